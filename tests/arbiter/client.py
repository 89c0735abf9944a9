"""A client of the arbiter: sends messages and reads its page."""

import ctypes
import mmap
import os
import platform
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from limiter import arbitration
from limiter.arbitration import ACCEPTED, DONE, DONE_AWAITED, WANT, ClientPage

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}[platform.machine()]


def open_connection(path: Path) -> socket.socket:
    """A connection on which nothing has been sent."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    opened.settimeout(10)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)  # the length of a socket's path is limited
    try:
        opened.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        opened.close()
        raise
    finally:
        os.close(folder)
    return opened


class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class Client:
    """The connection of one process for one card. Sends only what a test asks for."""

    def __init__(self, path: Path, uuid: bytes, hello: bytes | None = None) -> None:
        self.socket = open_connection(path)
        self.page: mmap.mmap | None = None
        with suppress(BrokenPipeError):  # the arbiter may have closed the connection
            self.socket.send(
                arbitration.HELLO.pack(arbitration.MAGIC, arbitration.VERSION, 0, uuid) if hello is None else hello
            )
        self.result = self._read_welcome()

    def _read_welcome(self) -> int | None:
        data, fds, _, _ = socket.recv_fds(self.socket, 64, 4)
        if not data:
            return None
        magic, version, result = arbitration.WELCOME.unpack(data)
        assert (magic, version) == (arbitration.MAGIC, arbitration.VERSION)
        assert len(fds) == (result == ACCEPTED)
        if fds:
            self.fd = fds[0]
            self.page = mmap.mmap(self.fd, ctypes.sizeof(ClientPage), mmap.MAP_SHARED, mmap.PROT_READ)
        return int(result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()
        if self.page is not None:
            self.page.close()
            os.close(self.fd)
            self.page = None

    def read(self) -> ClientPage:
        assert self.page is not None
        return ClientPage.from_buffer_copy(self.page)

    @property
    def turn(self) -> int:
        return int(self.read().turn)

    @property
    def yields(self) -> int:
        return int(self.read().yield_turn)

    @property
    def budget(self) -> int:
        return int(self.read().budget_ns)

    @property
    def heartbeat_at(self) -> int:
        return int(self.read().heartbeat_at)

    @property
    def contended(self) -> int:
        return int(self.read().contended)

    @property
    def fallback_percent(self) -> int:
        return int(self.read().fallback_percent)

    @property
    def free_at(self) -> int:
        return int(self.read().free_at)

    def want(self) -> None:
        self.socket.send(arbitration.MESSAGE.pack(WANT, 0, 0))

    def done(self, turn: int | None = None, rest: int = 0, *, is_awaited: bool = False) -> None:
        kind = DONE_AWAITED if is_awaited else DONE
        self.socket.send(arbitration.MESSAGE.pack(kind, self.turn if turn is None else turn, rest))

    def wait(self, seconds: float = 10) -> int:
        """Waits on the futex for a turn and returns its number. Sends WANT again after each timeout."""
        until = time.monotonic() + seconds
        while (turn := self.turn) == 0:
            assert time.monotonic() < until, "no turn came"
            self._sleep()
            if self.turn == 0:
                self.want()
        return turn

    def _sleep(self) -> None:
        """Waits until the page's first word is not 0, a wake-up comes, or 50 ms have passed."""
        assert self.page is not None
        libc = ctypes.CDLL(None, use_errno=True)
        span = Timespec(0, 50_000_000)
        libc.syscall(_FUTEX, ctypes.c_void_p(self.address), 0, 0, ctypes.byref(span), None, 0)

    @property
    def address(self) -> int:
        """The page's address. The C library maps it, because ctypes takes no buffer of a read-only mmap."""
        if not hasattr(self, "_address"):
            libc = ctypes.CDLL(None, use_errno=True)
            libc.mmap.restype = ctypes.c_void_p
            self._address: int = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, self.fd, ctypes.c_long(0))
        return self._address

    def has_ended(self, seconds: float = 5) -> bool:
        """Whether the arbiter ends the connection within `seconds`."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(64) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
