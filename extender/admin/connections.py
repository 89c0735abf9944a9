"""Bounds the connections of the admin listener, so that its clients leave file descriptors for what answers them.

The listening socket accepts no more than a number of connections; the event loop then waits a second, as it does where
the system has no file descriptor left. An address may have as many as are left for others: one that opens ever more has
half of all, three have a quarter each, and a quarter is left. A client that sends no request is disconnected.
"""

import asyncio
import errno
import logging
import socket
from collections import defaultdict
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vgpu.adapters import listening, process

MAX_CONNECTIONS: Final = 4_096
SILENCE_S: Final = 15.0
STUCK_MS: Final = 30_000  # a peer that takes no data for so long is disconnected by the kernel

log = logging.getLogger(__name__)


class BoundedListener(socket.socket):
    """A listening socket that has at most `most` accepted connections open; `accepted` has them by address."""

    most: int
    accepted: defaultdict[str, list[socket.socket]]

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raises OSError where there are too many, BlockingIOError where it was closed again."""
        if self._left <= 0:
            self._forget_closed()
        if self._left <= 0:
            raise OSError(errno.EMFILE, f"{self.most} connections are open")
        connection, address = super().accept()
        host = address[0]
        if len(self.accepted[host]) >= self._left:
            self._forget_closed()
        if len(self.accepted[host]) >= self._left:
            connection.close()
            raise BlockingIOError(errno.EWOULDBLOCK, f"{len(self.accepted[host])} connections of {host} are open")
        self.accepted[host].append(connection)
        return connection, address

    @property
    def _left(self) -> int:
        """How many connections there may be more, without those that have closed since they were last looked for."""
        return self.most - sum(map(len, self.accepted.values()))

    def _forget_closed(self) -> None:
        known, self.accepted = self.accepted, defaultdict(list)
        for host, connections in known.items():
            if left_open := [connection for connection in connections if connection.fileno() >= 0]:
                self.accepted[host] = left_open


def listen(host: str, port: int, most: int) -> BoundedListener:
    """Return a listening socket. Raises OSError."""
    made = listening.bind(host, port, BoundedListener)
    made.most, made.accepted = most, defaultdict(list)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STUCK_MS)  # accepted connections inherit the option
    return made


def most_connections() -> int:
    """Return how many connections there may be: they use half of the file descriptors at most."""
    return min(MAX_CONNECTIONS, process.raise_descriptors() // 2)


def note_full(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log in one line that the listener is full; the loop's handler for everything else."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        log.warning("the admin listener accepts no connection for a second: %s", error)
    else:
        loop.default_exception_handler(context)


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP, with a time limit for the first request's head."""

    def connection_made(self, transport: Any) -> None:
        """Start the time limit."""
        super().connection_made(transport)
        self.loop.call_later(SILENCE_S, self._end_silent)

    def _end_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
