"""The page's server: static files, the state as JSON, and one WebSocket for each viewer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request

from .sources import CommandRefused
from .viewers import Full, Viewer, Viewers

STATIC = Path(__file__).with_name("static")
TICK_S = 0.1
START_TIMEOUT_S = 30.0
LONGEST_COMMAND_BYTES = 4096
_FULL, _FOREIGN, _TOO_LONG = 1013, 1008, 1009  # close codes (RFC 6455, 7.4.1, and IANA's registry)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"


class ServerError(Exception):
    """The page cannot be served; the text is one sentence for the user."""


def create(viewers: Viewers, *, loopback: bool = True) -> FastAPI:
    """The application that shows a source to viewers.

    Parameters
    ----------
    viewers : Viewers
        Who watches what.
    loopback : bool
        Only names of this machine are answered to, so that no page of another site gets here under
        a name of its own.
    """
    ticked = asyncio.Event()

    @asynccontextmanager
    async def ticking(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(tick())
        yield
        task.cancel()

    async def tick() -> None:
        nonlocal ticked
        due_s = time.monotonic()
        while True:
            viewers.advance(time.monotonic())
            happened, ticked = ticked, asyncio.Event()
            happened.set()
            due_s = max(due_s + TICK_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())

    page = FastAPI(title="tactical live view", lifespan=ticking, docs_url=None, redoc_url=None)
    page.add_middleware(BaseHTTPMiddleware, dispatch=_guarded)
    if loopback:
        page.add_middleware(TrustedHostMiddleware, allowed_hosts=[*_LOOPBACK, "[::1]"])
    page.mount("/static", StaticFiles(directory=STATIC), name="static")

    @page.get("/", response_class=FileResponse)
    def index() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @page.get("/state")
    async def state() -> dict[str, Any]:
        return document(viewers)

    @page.websocket("/watch")
    async def watch(browser: WebSocket, token: str = "") -> None:
        if not _same_origin(browser):
            await browser.close(_FOREIGN)
            return
        await browser.accept()
        try:
            viewer = viewers.join(token)
        except Full as full:
            await browser.close(_FULL, str(full))
            return
        telling = asyncio.create_task(tell(browser, viewer))
        try:
            await hear(browser, viewer)
        except WebSocketDisconnect:
            pass
        finally:
            telling.cancel()
            with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await telling
            viewers.leave(viewer)

    async def tell(browser: WebSocket, viewer: Viewer) -> None:
        while True:
            next_tick = ticked
            await browser.send_text(viewers.message(viewer))
            await next_tick.wait()

    async def hear(browser: WebSocket, viewer: Viewer) -> None:
        while True:
            text = await browser.receive_text()
            if len(text) > LONGEST_COMMAND_BYTES:
                await browser.close(_TOO_LONG, "a command is short")
                return
            problem = _carried_out(viewers, viewer, text)
            if problem is not None:
                await browser.send_text(json.dumps({"type": "refused", "reason": problem}))

    return page


def document(viewers: Viewers) -> dict[str, Any]:
    """All that is known now, as one JSON document."""
    source = viewers.source
    return {
        "mode": source.mode,
        "viewers": viewers.count,
        "coalesced": viewers.coalesced,
        "setup": source.state.setup.document(),
        **source.state.store.since(0),
    }


def _carried_out(viewers: Viewers, viewer: Viewer, text: str) -> str | None:
    """Carry out what a viewer commands; why not, if not."""
    try:
        command = json.loads(text)
    except ValueError:
        return "a command is a JSON object"
    if not isinstance(command, dict):
        return "a command is a JSON object"
    if not viewers.steers(viewer):
        return "this page only watches; the address with the token plays"
    try:
        viewers.source.command(command, time.monotonic())
    except CommandRefused as refused:
        return str(refused)
    return None


def _same_origin(browser: WebSocket) -> bool:
    """Browsers let a page of any site open a WebSocket, and say which site that is."""
    origin = browser.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == browser.headers.get("host")


async def _guarded(request: Request, call_next: RequestResponseEndpoint) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-cache"
    return response


@contextmanager
def serving(viewers: Viewers, host: str, port: int) -> Iterator[str]:
    """Serve in a thread while the block lasts.

    Parameters
    ----------
    host, port
        Where to listen; port 0 takes a free one.

    Yields
    ------
    str
        The address of the page, without token.

    Raises
    ------
    ServerError
        If it cannot be served there.
    """
    config = uvicorn.Config(
        create(viewers, loopback=host in _LOOPBACK),
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=2,
        ws_max_size=4 * LONGEST_COMMAND_BYTES,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "a TCP port is a number up to 65535"
        raise ServerError(f"{host} port {port}: {reason}") from error
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listening]}, daemon=True, name="page"
    )
    thread.start()
    try:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not server.started:
            if time.monotonic() > deadline_s or not thread.is_alive():
                raise ServerError(f"{host} port {port}: the page's server did not start")
            time.sleep(0.01)
        number = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{number}/"
    finally:
        server.should_exit = True
        thread.join(5.0)
        listening.close()
