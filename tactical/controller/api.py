"""The northbound API: HTTP and JSON, described by OpenAPI at ``/openapi.json`` and ``/docs``.

It runs beside the application in a thread with an event loop of its own.  Reading takes what the
decision thread has left, which is replaced whole and never changed; a change is an event like any
other, and is answered when what it led to is deployed.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import TimeoutError as LateError
from typing import TYPE_CHECKING, Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import generate_latest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from starlette.middleware.trustedhost import TrustedHostMiddleware

from . import policy
from .addresses import Address
from .events import CapacitySet, DemandSet, Event, PolicySet
from .metrics import Metrics
from .quantities import RATE_BPS
from .records import Line
from .serving import ServingError

if TYPE_CHECKING:
    from .app import ControllerApp

REMEMBERED = 1000
"""Events that somebody who asks late still gets."""
CHANGE_TIMEOUT_S = 30.0
START_TIMEOUT_S = 30.0

Rate = Annotated[
    float,
    Field(ge=0, le=RATE_BPS.most, allow_inf_nan=False, description="bit/s, rounded to whole ones"),
    AfterValidator(lambda rate_bps: float(round(rate_bps))),
]


class Strict(BaseModel):
    """A body without unknown fields, whose numbers are numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DemandBody(Strict):
    """What a user wants to send."""

    rate_bps: Rate


class CapacityBody(Strict):
    """What a link carries, in either direction."""

    capacity_bps: Rate


class PolicyBody(Strict):
    """Which policy decides."""

    policy: Annotated[str, Field(json_schema_extra={"enum": list(policy.NAMES)})]

    @field_validator("policy")
    @classmethod
    def _exists(cls, name: str) -> str:
        if name not in policy.NAMES:
            raise ValueError(f"expected one of {', '.join(policy.NAMES)}")
        return name


class Demand(BaseModel):
    """A user's demand: as it counts, as described, and as measured."""

    user: str
    rate_bps: float
    described_bps: float
    measured_bps: float | None


class Link(BaseModel):
    """A trunk; its name is its first end."""

    name: str
    ends: list[list[str]]
    capacity_bps: float
    described_bps: float
    delay_s: float
    up: bool


class Datapath(BaseModel):
    """A switch."""

    name: str
    dpid: int
    connected: bool


class Association(BaseModel):
    """A station at an access point."""

    user: str
    access_point: str


class NetworkState(BaseModel):
    """The network as the controller sees it."""

    policy: str
    master: bool
    datapaths: list[Datapath]
    links: list[Link]
    associations: list[Association]
    down_ports: list[list[str]]


class QueueState(BaseModel):
    """A queue as deployed."""

    datapath: str
    port: str
    queue_id: int
    min_bps: int
    max_bps: int


class SubflowState(BaseModel):
    """A subflow: its path, what it was given, and what it sends."""

    user: str
    via: str
    address: str
    path: list[list[str]]
    server_port: int | None
    rate_bps: float | None
    measured_bps: float | None
    queues: list[QueueState]


class AllocationState(BaseModel):
    """The allocation in force; no subflows before the first."""

    policy: str
    relative_gap: float | None
    mean_packet_delay_s: float | None
    subflows: list[SubflowState]


class Connection(BaseModel):
    """An MPTCP connection: its token, and the ends of its subflows."""

    token: int | None
    subflows: list[str]


class Outcome(BaseModel):
    """What came of a change."""

    trigger: str
    in_force: bool


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    detail: str


_BEARER = HTTPBearer(auto_error=False, description="The content of --token-file")
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "The bearer token is missing or wrong"},
    404: {"model": Problem, "description": "The network has no such thing"},
    409: {"model": Problem, "description": "Another controller is the master"},
    503: {"model": Problem, "description": "It could not be carried out; the old state stays"},
}
_READING: dict[int | str, dict[str, Any]] = {401: _PROBLEMS[401]}


def create(app: ControllerApp, token: str | None, *, open_to_readers: bool = True) -> FastAPI:
    """The API of a running controller.

    Parameters
    ----------
    app
        The controller.
    token
        Bearer token; without one everybody who reaches the API may change things.
    open_to_readers
        Whether only changes need the token.
    """
    log = EventLog(app)
    metrics = Metrics(app)

    def authorised(
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    ) -> None:
        expected = (token or "").encode()
        if token and (
            given is None or not secrets.compare_digest(given.credentials.encode(), expected)
        ):
            raise HTTPException(
                401, "the bearer token is missing or wrong", {"WWW-Authenticate": "Bearer"}
            )

    reader = [] if open_to_readers else [Depends(authorised)]
    writer = [Depends(authorised)]
    api = FastAPI(
        title="tactical controller",
        version="1",
        description="The network, demands, the allocation in force, and changes of them.",
    )
    api.add_exception_handler(RequestValidationError, _refused)
    network = app.network

    def carry_out(event: Event) -> Outcome:
        if not app.master:
            raise HTTPException(409, "another controller is the master")
        try:
            outcome = app.submit(event).result(CHANGE_TIMEOUT_S)
        except LateError:
            raise HTTPException(503, f"not done within {CHANGE_TIMEOUT_S:g} s") from None
        except Exception as error:  # noqa: BLE001 - recorded where it happened
            raise HTTPException(503, f"{type(error).__name__}: {error}") from None
        if not outcome.in_force:
            raise HTTPException(503, outcome.reason)
        return Outcome(trigger=outcome.trigger, in_force=outcome.in_force)

    @api.get("/network", dependencies=reader, responses=_READING)
    def get_network() -> NetworkState:
        """Switches, links and associations."""
        view = app.controller.view
        situation = view.situation(network, time.monotonic())
        return NetworkState(
            policy=view.policy,
            master=app.master,
            datapaths=[
                Datapath(name=d.name, dpid=d.dpid, connected=d.dpid in view.connected)
                for d in network.datapaths
            ],
            links=[
                Link(
                    name=t.name,
                    ends=[[t.a_datapath, t.a_port], [t.b_datapath, t.b_port]],
                    capacity_bps=situation.capacities.get(t, t.rate_bps),
                    described_bps=t.rate_bps,
                    delay_s=situation.delay_s(t),
                    up=t in situation.usable,
                )
                for t in network.trunks
            ],
            associations=[
                Association(user=user, access_point=place)
                for user, place in sorted(view.associated)
            ],
            down_ports=[list(port) for port in sorted(view.down_ports)],
        )

    @api.get("/demands", dependencies=reader, responses=_READING)
    def get_demands() -> list[Demand]:
        """What every user wants to send."""
        view = app.controller.view
        wanted = view.situation(network, time.monotonic()).demands
        return [
            Demand(
                user=d.user,
                rate_bps=wanted[d.user],
                described_bps=d.rate_bps,
                measured_bps=view.measurements.sent_bps(d.user),
            )
            for d in network.demands
        ]

    @api.put("/demands/{user}", dependencies=writer, responses=_PROBLEMS)
    def put_demand(user: Annotated[str, Path()], body: DemandBody) -> Outcome:
        """Say what a user wants to send; what is measured or described no longer counts."""
        if not any(d.user == user for d in network.demands):
            raise HTTPException(404, f"no demand of a user {user!r} is described")
        return carry_out(DemandSet(user, body.rate_bps))

    @api.put("/policy", dependencies=writer, responses=_PROBLEMS)
    def put_policy(body: PolicyBody) -> Outcome:
        """Let another policy decide."""
        return carry_out(PolicySet(body.policy))

    @api.put("/links/{name}", dependencies=writer, responses=_PROBLEMS)
    def put_capacity(name: Annotated[str, Path()], body: CapacityBody) -> Outcome:
        """Say what a link carries."""
        if not any(t.name == name for t in network.trunks):
            raise HTTPException(404, f"there is no link {name!r}")
        return carry_out(CapacitySet(name, body.capacity_bps))

    @api.get("/allocation", dependencies=reader, responses=_READING)
    def get_allocation() -> AllocationState:
        """Paths, rates and queues in force."""
        controller = app.controller
        allocation, rates = controller.allocation, controller.view.measurements.rates_bps
        solution = None if allocation is None else allocation.solution
        queues: dict[tuple[str, str], list[QueueState]] = {}
        for q, rate in controller.deployed.queues.items():
            queues.setdefault((q.user, q.via), []).append(
                QueueState(
                    datapath=q.datapath,
                    port=q.port,
                    queue_id=q.queue_id,
                    min_bps=rate.min_bps,
                    max_bps=rate.max_bps,
                )
            )
        return AllocationState(
            policy=controller.view.policy,
            relative_gap=None if solution is None else solution.relative_gap,
            mean_packet_delay_s=None if solution is None else solution.mean_packet_delay_s,
            subflows=[
                SubflowState(
                    user=s.attachment.user,
                    via=s.attachment.datapath,
                    address=s.attachment.address,
                    path=[[hop.datapath, hop.port] for hop in s.path],
                    server_port=s.server_port,
                    rate_bps=s.rate_bps,
                    measured_bps=rates.get(("subflow", s.attachment.user, s.attachment.datapath)),
                    queues=queues.get((s.attachment.user, s.attachment.datapath), []),
                )
                for s in (() if allocation is None else allocation.subflows)
            ],
        )

    @api.get("/connections", dependencies=reader, responses=_READING)
    def get_connections() -> list[Connection]:
        """MPTCP connections and their subflows, as far as their handshakes were seen."""
        grouped: dict[object, Connection] = {}
        for ends, connection_token in app.controller.view.subflows.connection.items():
            key = ends if connection_token is None else connection_token
            client, client_port, server, server_port = ends
            grouped.setdefault(
                key, Connection(token=connection_token, subflows=[])
            ).subflows.append(f"{client}:{client_port} {server}:{server_port}")
        return list(grouped.values())

    @api.get("/solves", dependencies=reader, responses=_READING)
    def get_solves() -> list[dict[str, Any]]:
        """The last solves, as they were recorded."""
        return [line for line in log.lines() if line["kind"] == "solve"]

    @api.get(
        "/events",
        dependencies=reader,
        response_class=StreamingResponse,
        responses={**_READING, 200: {"content": {"text/event-stream": {}}}},
    )
    async def get_events(
        request: Request,
        last: Annotated[int, Query(ge=0, le=REMEMBERED)] = 0,
        follow: Annotated[bool, Query()] = True,
    ) -> StreamingResponse:
        """Everything that happens, as server-sent events; first the `last` that already did."""
        stream = log.follow(request.is_disconnected, last, follow)
        return StreamingResponse(stream, media_type="text/event-stream")

    @api.get(
        "/metrics",
        dependencies=reader,
        response_class=PlainTextResponse,
        responses=_READING,
    )
    def get_metrics() -> Response:
        """Prometheus metrics."""
        text = generate_latest(metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return api


async def _refused(_: Request, error: Exception) -> Response:
    """Say what is wrong with a request, and not what it was.

    FastAPI does both, and fails at NaN and lone surrogates, which cannot be said in an answer.
    """
    assert isinstance(error, RequestValidationError)
    detail = [{key: fault[key] for key in ("type", "loc", "msg")} for fault in error.errors()]
    return Response(json.dumps({"detail": detail}), 422, media_type="application/json")


class EventLog:
    """The last records, and a stream of those to come; samples are left to the metrics."""

    def __init__(self, app: ControllerApp) -> None:
        self._lines: deque[Line] = deque(maxlen=REMEMBERED)
        self._write = app.write
        app.write.listen(self._keep)

    def _keep(self, line: Line) -> None:
        if line["kind"] != "sample":
            self._lines.append(line)

    def lines(self) -> list[Line]:
        """What is remembered, the oldest first."""
        return list(self._lines)

    async def follow(
        self, gone: Callable[[], Awaitable[bool]], last: int, follow: bool
    ) -> AsyncIterator[str]:
        """Server-sent events (WHATWG HTML, 9.2) until `gone` says so."""
        loop = asyncio.get_running_loop()
        coming: asyncio.Queue[Line] = asyncio.Queue(REMEMBERED)

        def put(line: Line) -> None:
            if not coming.full():  # a reader that does not read must not hold anything up
                coming.put_nowait(line)

        def hear(line: Line) -> None:
            if line["kind"] != "sample":
                loop.call_soon_threadsafe(put, line)

        end = self._write.listen(hear)
        try:
            for line in self.lines()[-last:] if last else []:
                yield _event(line)
            while follow:
                try:
                    yield _event(await asyncio.wait_for(coming.get(), 1.0))
                except TimeoutError:
                    if await gone():
                        return
                    yield ": still here\n\n"
        finally:
            end()


def _event(line: Line) -> str:
    return f"event: {line['kind']}\ndata: {json.dumps(line)}\n\n"


def serve(app: ControllerApp, address: Address, token: str | None) -> None:
    """Serve the API in a thread of its own.

    Raises
    ------
    ServingError
        If it does not start.
    """
    api = create(app, token, open_to_readers=address.loopback)
    if address.loopback:
        # A page in a browser on this machine must not get here under a name of its own.
        names = ["localhost", "127.0.0.1", "[::1]", address.host]
        api.add_middleware(TrustedHostMiddleware, allowed_hosts=names)
    config = uvicorn.Config(
        api, host=address.host, port=address.port, log_level="warning", access_log=False
    )
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True, name="api").start()
    deadline = time.monotonic() + START_TIMEOUT_S
    while not server.started:
        if time.monotonic() > deadline:
            raise ServingError(f"API: it did not start within {START_TIMEOUT_S:g} s")
        time.sleep(0.01)
