"""An arbiter that a test controls: it writes any page, also invalid ones, and records the messages.

By default it gives turns in the order of the requests, one at a time. A test may change any field of a page.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from limiter import arbitration
from limiter.arbitration import ACCEPTED, ANY, DONE, DONE_AWAITED, WANT, ClientPage

MS = 1_000_000
BEAT_S = 0.02
BEAT_AHEAD_NS = 50 * MS  # a loaded machine delays this thread by more than the heartbeat timeout of 60 ms
LONGEST_S = 0.1  # of a turn while another client waits

_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
_FUTEX_WAKE = 1


@dataclass(eq=False)
class Client:
    """One connection, and its messages as (kind, turn, ns)."""

    connection: socket.socket
    uuid: bytes
    page: ClientPage
    abilities: int = 0
    heard: list[tuple[int, int, int]] = field(default_factory=list)
    has_left: bool = False

    @property
    def wants(self) -> int:
        return sum(kind == WANT for kind, _, _ in self.heard)

    @property
    def done(self) -> list[tuple[int, int]]:
        return [(turn, ns) for kind, turn, ns in self.heard if kind in {DONE, DONE_AWAITED}]

    def give(self, turn: int) -> None:
        self.page.turn = turn
        ctypes.CDLL(None).syscall(_FUTEX, ctypes.byref(self.page), _FUTEX_WAKE, 1)


def shut_down(*sockets: socket.socket) -> None:
    """Ends all traffic, so that calls that wait on the sockets return. The threads that use the sockets close them."""
    for opened in sockets:
        with contextlib.suppress(OSError):  # the other side has ended it
            opened.shutdown(socket.SHUT_RDWR)


class Arbiter:
    """Listens on a container's socket until it is closed.

    Attributes:
        clients: in the order of their connections, including those that have ended.
        gives: whether requests are answered with turns.
    """

    def __init__(
        self,
        path: Path,
        *,
        contended: bool = True,
        budget_ns: int = 5 * MS,
        depth_ns: int = ANY,
        fallback: int = 50,
        gives: bool = True,
        result: int = ACCEPTED,
        beats: bool = True,
        seals: bool = True,
    ) -> None:
        self.clients: list[Client] = []
        self.gives, self.beats = gives, beats
        self._terms = (budget_ns, depth_ns, int(contended), fallback)
        self._result, self._seals = result, seals
        self._connections: list[socket.socket] = []  # each is closed by the thread that serves it
        self._last, self._given_at, self._queue = 0, 0.0, list[Client]()
        self._holder: Client | None = None
        self._open = True
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._accept, self._beat)]
        for thread in tuple(self._threads):  # the first one, of _accept, adds others to the list
            thread.start()

    def close(self) -> None:
        """Ends all connections, as when the arbiter is killed, and waits for its threads. May be called again."""
        with self._lock:
            self._open = False
            shut_down(self._listener, *self._connections)
        for thread in self._threads:  # the first one, of _accept, adds others to the list
            thread.join()

    def client(self, number: int = 0) -> Client:
        """Waits for the connection number `number`, counted from 0."""
        until = time.monotonic() + 10
        while len(self.clients) <= number:
            assert time.monotonic() < until, "nobody connected"
            time.sleep(0.01)
        return self.clients[number]

    def _accept(self) -> None:
        with self._listener, contextlib.suppress(OSError):  # shut down
            while self._open:
                self._start_serving(self._listener.accept()[0])

    def _start_serving(self, connection: socket.socket) -> None:
        thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
        with self._lock:
            self._connections.append(connection)
            self._threads.append(thread)
            if not self._open:
                shut_down(connection)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # ended by the other side, or by `close`
                self._welcome(connection)
            with self._lock:
                self._connections.remove(connection)

    def _welcome(self, connection: socket.socket) -> None:
        hello = connection.recv(64)
        if not hello:
            return
        magic, version, abilities, uuid = arbitration.HELLO.unpack(hello)
        assert (magic, version) == (arbitration.MAGIC, arbitration.VERSION)
        file = os.memfd_create("page", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, mmap.PAGESIZE)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK if self._seals else 0)
        client = Client(connection, uuid, ClientPage.from_buffer(mmap.mmap(file, mmap.PAGESIZE)), abilities)
        page = client.page
        page.budget_ns, page.depth_ns, page.contended, page.fallback_percent = self._terms
        page.heartbeat_at = time.monotonic_ns()
        accepted = self._result == ACCEPTED
        welcome = arbitration.WELCOME.pack(arbitration.MAGIC, arbitration.VERSION, self._result)
        try:
            socket.send_fds(connection, [welcome], [file] if accepted else [])
        finally:
            os.close(file)
        if accepted:
            self.clients.append(client)
        self._listen(client)

    def _listen(self, client: Client) -> None:
        while self._open:
            try:
                message = client.connection.recv(64)
            except OSError:
                message = b""
            if not message:
                client.has_left = True
                break
            client.heard.append(arbitration.MESSAGE.unpack(message))
            self._arbitrate(client, *client.heard[-1][:2])
        self._arbitrate(client, DONE, client.page.turn)

    def _arbitrate(self, client: Client, kind: int, turn: int) -> None:
        with self._lock:
            if kind == WANT and client not in self._queue and not client.page.turn:
                self._queue.append(client)
            if kind in {DONE, DONE_AWAITED} and turn == client.page.turn:
                self._take(client)
            self._give()

    def _take(self, client: Client) -> None:
        client.give(0)
        if client is self._holder:
            self._holder = None

    def _give(self) -> None:
        if self.gives and not self._holder and self._queue:
            self._last += 1
            self._holder, self._given_at = self._queue.pop(0), time.monotonic()
            self._holder.give(self._last)

    def _beat(self) -> None:
        while self._open:
            if self.beats:
                for client in list(self.clients):
                    client.page.heartbeat_at = time.monotonic_ns() + BEAT_AHEAD_NS
            with self._lock:
                if self.gives and self._holder and self._queue and time.monotonic() > self._given_at + LONGEST_S:
                    self._take(self._holder)
                self._give()
            time.sleep(BEAT_S)
