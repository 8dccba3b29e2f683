"""Run the controller: ``python -m tactical.controller --network FILE``.

Events about stations are read from standard input, one JSON object a line
(``{"user": "ship1", "access_point": "uav", "associated": true}``); records are written to
standard output, one JSON object a line.  The controller ends when its input does.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import IO

from .network import ControlledNetwork, NetworkError, load


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tactical.controller", description=__doc__)
    parser.add_argument("--network", type=Path, required=True, help="network description (JSON)")
    parser.add_argument("--port", type=int, default=6653, help="OpenFlow TCP port (6653)")
    parser.add_argument(
        "--ovsdb",
        default="unix:/var/run/openvswitch/db.sock",
        help="OVSDB connection method (the local Open vSwitch)",
    )
    options = parser.parse_args(arguments)

    try:
        network = load(options.network)
    except NetworkError as error:
        print(error, file=sys.stderr)
        return 2

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    # Records own standard output; anything that libraries print goes to standard error.
    records = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _start(network, options.port, options.ovsdb, records)
    return 0


def _start(network: ControlledNetwork, port: int, ovsdb: str, records: IO[str]) -> None:
    # Threads rather than eventlet: starts in half the time, and OVSDB's client can block in one.
    os.environ.setdefault("OSKEN_HUB_TYPE", "native")
    from os_ken.lib import hub

    hub.patch()
    # This order matters: os_ken.controller.controller fails when it is imported first.
    from os_ken.base.app_manager import AppManager

    from . import hub_repair

    hub_repair.apply()
    from os_ken import cfg

    from .app import ControllerApp, RecordWriter
    from .logic import Record

    cfg.CONF(args=[], project="os_ken", default_config_files=[])
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
    write = RecordWriter(records)
    ControllerApp.network = network
    ControllerApp.ovsdb = ovsdb
    ControllerApp.write = write

    def read_events() -> None:
        for line in sys.stdin:
            try:
                event = json.loads(line)
                app = AppManager.get_instance().applications["ControllerApp"]
                app.association(event["user"], event["access_point"], event["associated"])
            except (ValueError, KeyError, TypeError) as error:
                write(Record("error", "controller", {"message": f"{line.strip()}: {error!r}"}))
        # os-ken's threads cannot be joined; nothing is left to write.
        os._exit(0)

    threading.Thread(target=read_events, daemon=True, name="events").start()
    AppManager.run_apps(["os_ken.controller.ofp_handler", "tactical.controller.app"])


if __name__ == "__main__":
    sys.exit(main())
