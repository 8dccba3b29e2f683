"""Runs the application: where it listens, whom it tells, how it ends."""

from __future__ import annotations

import errno
import gc
import logging
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from .logic import Record
from .network import ControlledNetwork
from .quantities import shown
from .records import RecordWriter
from .reports import LONGEST_LINE, read_report

if TYPE_CHECKING:
    from .app import ControllerApp, Options

START_TIMEOUT_S = 120.0
"""Imports alone take long on an emulated processor in real time."""


class ServingError(RuntimeError):
    """The controller cannot be started; the message says why."""


def own_standard_output() -> IO[str]:
    """Standard output for records alone: anything that libraries print goes to standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    # OVSDB's client imports eventlet where that is installed, and eventlet warns of itself, in
    # a category of its own.
    warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")
    records = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return records


def check_address(host: str, port: int, what: str) -> None:
    """See whether a TCP address can be listened on.

    Raises
    ------
    ServingError
        If it cannot.
    """
    if not 1 <= port <= 65535:  # of a larger one the C library takes the last 16 bits
        raise ServingError(f"{what} {host}:{port}: a TCP port is a number from 1 to 65535")
    try:
        # By position: eventlet's own, under Ryu, knows no names.
        family, _, _, _, address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        problem = "another program listens there" if taken else error.strerror
        raise ServingError(f"{what} {host}:{port}: {problem}") from None


def follow_reports(app: ControllerApp) -> threading.Event:
    """Hand what standard input tells to `app`, in a thread; the event is set when it ends."""
    ended = threading.Event()

    def follow() -> None:
        for line in _input_lines():
            try:
                event = read_report(line, time.monotonic(), app.network)
            except ValueError as error:
                told = {"message": f"report {shown(line.strip())}: {error}"}
                app.write(Record("error", "controller", told))
            else:
                app.submit(event)
        ended.set()

    threading.Thread(target=follow, daemon=True, name="reports").start()
    return ended


def _input_lines() -> Iterator[str]:
    from . import framework

    rest = b""
    while piece := framework.blocking(os.read, 0, 65536):
        *lines, rest = (rest + piece).split(b"\n")
        # Refused for its length as well as whole; a character has four bytes at most.
        rest = rest[: 4 * LONGEST_LINE + 4]
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def start(
    network: ControlledNetwork,
    options: Options,
    write: RecordWriter,
    host: str,
    port: int,
    *,
    discover_links: bool = False,
) -> ControllerApp:
    """Start to serve switches that connect to `host`:`port`, in threads of the framework's own.

    With `discover_links`, LLDP is sent through every port of every switch, and what it finds is
    compared with the description.

    Raises
    ------
    ServingError
        If the address cannot be listened on.
    """
    check_address(host, port, "OpenFlow")
    from . import framework, hub_repair
    from .app import ControllerApp

    hub_repair.apply()
    if discover_links:
        from . import links
    framework.configure(host, port)
    ControllerApp.network = network
    ControllerApp.options = options
    ControllerApp.write = write
    names = [framework.OFP_HANDLER, ControllerApp.__module__]
    if discover_links:
        links.observe()
        links.LinkWatcher.network = network
        links.LinkWatcher.write = write
        names += [links.APP, links.LinkWatcher.__module__]
    manager = framework.app_manager.AppManager
    running = threading.Event()
    made: list[ControllerApp] = []

    def run() -> None:
        # As the framework's `run_apps`, which does not say when the applications are there.
        apps = manager.get_instance()
        apps.load_apps(names)
        contexts = apps.create_contexts()
        services = apps.instantiate_apps(**contexts)
        made.append(apps.applications["ControllerApp"])
        running.set()
        framework.hub.joinall(services)

    threading.Thread(target=run, daemon=True, name="framework").start()
    if not running.wait(START_TIMEOUT_S):
        raise ServingError(f"OpenFlow: the framework did not start within {START_TIMEOUT_S:g} s")
    # What is there by now stays; the collector need not look through it during a handover.
    gc.collect()
    gc.freeze()
    return made[0]
