"""The OpenFlow framework: os-ken, or Ryu 4.34 where only that is installed.

os-ken is the maintained continuation of Ryu and has the same interface under another name.  This
is the only module that names either; docs/controller.md says what Ryu needs to start.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

NAME = "os_ken" if importlib.util.find_spec("os_ken") else "ryu"


def _module(path: str) -> Any:
    return importlib.import_module(f"{NAME}.{path}")


# Threads rather than eventlet: they start in half the time, and the API's server needs them.
# Ryu knows eventlet only.
os.environ.setdefault("OSKEN_HUB_TYPE", "native")
hub = _module("lib.hub")
hub.patch()

if NAME == "ryu":
    # Ryu 4.34 imports a name that eventlet gave up in 0.30.3; only its web server would use it.
    eventlet_wsgi = importlib.import_module("eventlet.wsgi")
    if not hasattr(eventlet_wsgi, "ALREADY_HANDLED"):
        vars(eventlet_wsgi)["ALREADY_HANDLED"] = object()

# This order matters: the controller fails when it is imported first.
app_manager = _module("base.app_manager")
controller = _module("controller.controller")
handler = _module("controller.handler")
ofp_event = _module("controller.ofp_event")
ofproto_v1_3 = _module("ofproto.ofproto_v1_3")
cfg = _module("cfg")

App: type = app_manager.OSKenApp if NAME == "os_ken" else app_manager.RyuApp
OFP_HANDLER = f"{NAME}.controller.ofp_handler"


def blocking(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what waits for something; under Ryu in a thread that is none of eventlet's."""
    if NAME == "ryu":
        return importlib.import_module("eventlet.tpool").execute(function, *arguments)
    return function(*arguments)


def configure(host: str, port: int) -> None:
    """Set where switches connect to."""
    cfg.CONF(args=[], project=NAME, default_config_files=[])
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    cfg.CONF.set_override("ofp_listen_host", host)
