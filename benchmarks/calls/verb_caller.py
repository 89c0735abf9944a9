"""Calls verbs over one kept connection, as kube-scheduler does, from a process of its own.

The process has real-time priority where it may: kube-scheduler does not share the extender's processors with other
clients, so the caller must not wait for them.

The API server of these benchmarks runs in their own process: a caller beside it would measure its pauses too.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import socket
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from typing import cast


class VerbCaller:
    """Sends calls to the process and reads their replies and times."""

    def __init__(self, ours: Connection) -> None:
        self._ours = ours

    async def post(self, verb: str, body: bytes) -> tuple[float, bytes]:
        """Return the milliseconds of a call, and the body of its reply. Raises EOFError where it was not answered."""
        return await asyncio.to_thread(self._post, verb, body)

    def _post(self, verb: str, body: bytes) -> tuple[float, bytes]:
        self._ours.send((verb, body))
        return cast("tuple[float, bytes]", self._ours.recv())


@contextlib.asynccontextmanager
async def calling(url: str) -> AsyncIterator[VerbCaller]:
    """Start a process that calls `url`; it ends with the block."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(url, theirs), daemon=True)
    await asyncio.to_thread(process.start)
    theirs.close()  # a read of ours fails when the process has ended
    try:
        yield VerbCaller(ours)
    finally:
        ours.close()
        await asyncio.to_thread(process.join)


def _serve(url: str, asked: Connection) -> None:
    connection = _Connection(url)
    gc.disable()
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with contextlib.suppress(EOFError):
        while True:
            asked.send(connection.post(*asked.recv()))


class _Connection:
    """One kept connection; a reply is read to its last byte."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = host

    def post(self, verb: str, body: bytes) -> tuple[float, bytes]:
        """Return the milliseconds of a call, and the body of its reply."""
        head = f"POST /{verb} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        begun = time.perf_counter()
        self._socket.sendall(request)
        reply = self._reply()
        return (time.perf_counter() - begun) * 1000, reply

    def _reply(self) -> bytes:
        data = bytearray()
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._received()
        head = bytes(data[:end]).lower()
        assert head.startswith(b"http/1.1 200"), bytes(data[:500])
        length = end + 4 + int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(data) < length:
            data += self._received()
        return bytes(data[end + 4 : length])

    def _received(self) -> bytes:
        chunk = self._socket.recv(1 << 18)
        assert chunk, "the extender closed the connection"
        return chunk
