"""`tactical controller`: serves a described network of OpenFlow switches until it is stopped."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

from tactical.faults import Refused
from tactical.recognition import DESCRIBED, mismatch
from tactical.signals import Stopped

SUMMARY = "serve a network of OpenFlow 1.3 switches, emulated or real"
EXAMPLES = """\
FILE describes the network: datapaths, ports, attachments, trunks, server, demands, policy; every
run directory has one (network.json), and docs/controller.md explains it. Standard output gets one
JSON object a line for everything that happens. Reports about stations are read from standard
input, as far as there is one. SIGTERM or Ctrl-C end it; the switches go on with what they have.

examples:
  tactical controller --network network.json
  tactical controller --network network.json --listen 192.0.2.1:6653 --ovsdb tcp:192.0.2.7:6640
  tactical controller --network network.json --policy ecmp
  tactical controller --network network.json --api 127.0.0.1:8080      see /docs there
  tactical controller --network network.json --role elected            one of several controllers
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "--network", type=Path, required=True, metavar="FILE", help="what is served"
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:6653",
        metavar="ADDRESS:PORT",
        help="where switches connect to by OpenFlow (default: 127.0.0.1:6653)",
    )
    parser.add_argument(
        "--ovsdb",
        default="unix:/var/run/openvswitch/db.sock",
        metavar="METHOD",
        help="OVSDB connection of datapaths that name none (default: the local Open vSwitch)",
    )
    parser.add_argument("--policy", metavar="NAME", help="another policy than the description's")
    parser.add_argument(
        "--role",
        choices=("alone", "elected"),
        default="alone",
        help="alone (default), or one of several of which one at a time is the master",
    )
    parser.add_argument(
        "--discover-links", action="store_true", help="compare trunks with what LLDP finds"
    )
    parser.add_argument(
        "--api", metavar="ADDRESS:PORT", help="serve the HTTP API and Prometheus metrics there"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="bearer token: needed for changes by the API, and off the loopback for everything",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes; the exit status."""
    from tactical.controller import policy
    from tactical.controller.addresses import check_method, read_address
    from tactical.controller.network import NetworkError, load
    from tactical.controller.records import RecordWriter
    from tactical.controller.serving import (
        ServingError,
        check_address,
        follow_reports,
        own_standard_output,
        start,
    )

    try:
        network = load(options.network)
    except NetworkError as error:
        raise Refused(f"{error}{mismatch(options.network, DESCRIBED)}") from None
    try:
        listen = read_address(options.listen)
        api = None if options.api is None else read_address(options.api)
    except ValueError as error:
        raise Refused(f"address {error}") from None
    try:
        check_method(options.ovsdb)
    except ValueError as error:
        raise Refused(f"--ovsdb {error}") from None
    if options.policy is not None:
        if options.policy not in policy.NAMES:
            names = ", ".join(policy.NAMES)
            raise Refused(f"--policy {options.policy}: there is none; expected one of {names}")
        network = replace(network, policy=options.policy)
    token = _token(options.token_file)
    if api is not None and not api.loopback and token is None:
        raise Refused(f"--api {options.api}: other machines reach it, so it needs --token-file")
    try:
        if api is not None:
            check_address(api.host, api.port, "API")
        check_address(listen.host, listen.port, "OpenFlow")
        write = RecordWriter(own_standard_output())
        from tactical.controller.app import Options

        app = start(
            network,
            Options(options.ovsdb, options.role == "elected"),
            write,
            listen.host,
            listen.port,
            discover_links=options.discover_links,
        )
        if api is not None:
            from tactical.controller.api import serve

            serve(app, api, token)
    except ServingError as error:
        raise Refused(str(error)) from None

    from tactical.controller.logic import Record

    if sys.stdin is not None and not sys.stdin.isatty():
        follow_reports(app)
    write(Record("state", "controller", {"state": "serving", "listen": options.listen}))
    try:
        threading.Event().wait()
    except (Stopped, KeyboardInterrupt):
        write(Record("state", "controller", {"state": "stopped"}))
        app.close()
        write.close()
    # The framework's threads cannot be joined; nothing is left to write.
    sys.stderr.flush()
    os._exit(0)


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Refused(f"--token-file {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"--token-file {file}: expected text in UTF-8") from None
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise Refused(f"--token-file {file}: expected 16 or more printable characters")
    return token
