"""One end of an application: its sockets are opened first, then it runs until it is stopped."""

from __future__ import annotations

import asyncio
import socket

from . import datagrams, files, messages, requests
from .connections import accepted, connected, listener
from .description import Clock, Description, Record


class End:
    """The end of an application at one node.

    Parameters
    ----------
    description
        What it shall do.
    at_host
        Whether this is the host's end; the other one is the station's.

    Raises
    ------
    OSError
        If a socket cannot be opened.
    """

    def __init__(self, description: Description, *, at_host: bool) -> None:
        self.description = description
        self.at_host = at_host
        self.record = Record.of(description)
        self._socket: socket.socket | None = None
        if description.transport == "udp":
            self._socket = datagrams.open_datagrams(description, at_host=at_host)
        elif at_host:
            self._socket = listener(description)

    @property
    def sends(self) -> bool:
        """Whether data begin at this end; with requests, the responses."""
        return self.description.upwards != self.at_host

    async def run(self, clock: Clock) -> None:
        """Do everything, and write it down in `record`; some ends go on until cancelled."""
        try:
            await self._run(clock)
        except OSError as error:
            self.record.failed("connection", error)
        finally:
            if self._socket is not None:
                self._socket.close()

    async def _run(self, clock: Clock) -> None:
        what, record = self.description, self.record
        if what.transport == "udp":
            assert self._socket is not None
            one_way = datagrams.send_datagrams if self.sends else datagrams.receive_datagrams
            await one_way(self._socket, what, record, clock)
            return
        if not self.at_host and (wait_s := what.start_s - clock.now_s) > 0:
            await asyncio.sleep(wait_s)
        if what.kind == "files":
            if self.at_host:
                assert self._socket is not None
                await files.serve_files(self._socket, what, record, clock)
            else:
                await files.open_files(what, record, clock)
            return
        if self.at_host:
            assert self._socket is not None
            opening = accepted(self._socket, what)
        else:
            opening = connected(what, record)
        with await opening as connection:
            sending, receiving = messages.send_messages, messages.receive_messages
            if what.kind == "requests":
                sending, receiving = requests.answer, requests.ask
            await (sending if self.sends else receiving)(connection, what, record, clock)
            # The other end may not have all of it; the connection stays until the end.
            await asyncio.Event().wait()
