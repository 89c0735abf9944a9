"""Sockets that listen at an IP address, for IPv4 and IPv6 alike.

`[::]` listens for both families by one socket, whatever the system's default is (net.ipv6.bindv6only), and for IPv4
alone where the kernel has no IPv6. asyncio and uvicorn would make a socket for IPv6 only. Any other address listens for
its own family.
"""

import errno
import ipaddress
import socket
from dataclasses import dataclass
from typing import Final, TypeVar

S = TypeVar("S", bound=socket.socket)

BACKLOG: Final = 512
LOOPBACK: Final = ("127.0.0.1", "::1")
_LAST_PORT: Final = 65_535
_NO_IPV6: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An IP address and a port. `host` has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> ListenAddress:
    """Read IP:PORT, where an IPv6 address stands in brackets. Raises ValueError.

    No name is read: the IP decides whether TLS is required.
    """
    host, _, port = text.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    address = ipaddress.ip_address(host[1:-1] if is_v6 else host)
    if is_v6 != (address.version == 6):  # noqa: PLR2004 - IPv6
        raise ValueError("an IPv6 address stands in brackets")
    if not (port.isascii() and port.isdecimal()) or int(port) > _LAST_PORT:
        raise ValueError(f"{port[:20]!r} is no port")
    return ListenAddress(str(address), int(port))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one. Raises OSError."""
    return bind(host, port, socket.socket)


def bind(host: str, port: int, kind: type[S]) -> S:
    """Return a listening socket of a class. Raises OSError."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv4Address):
        return _listening(socket.AF_INET, host, port, kind)
    if address.ipv4_mapped is not None:
        return _listening(socket.AF_INET, str(address.ipv4_mapped), port, kind)
    if not address.is_unspecified:
        return _listening(socket.AF_INET6, host, port, kind)
    try:
        return _listening(socket.AF_INET6, host, port, kind)
    except OSError as error:
        if error.errno not in _NO_IPV6:
            raise
        return _listening(socket.AF_INET, "0.0.0.0", port, kind)  # noqa: S104 - what `::` asks for


def loopback() -> str:
    """Return this machine's loopback address: of IPv4, or of IPv6 where only that is there. Raises OSError."""
    first, second = LOOPBACK
    try:
        listen(first, 0).close()
    except OSError:
        listen(second, 0).close()
        return second
    return first


def _listening(family: socket.AddressFamily, host: str, port: int, kind: type[S]) -> S:
    made = kind(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit the option
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made
