"""Connections that notice within seconds that the other end is gone without a word: a lost node, a dropped NAT entry.

A watch only reads, so without keepalive a connection whose peer vanished stays open until the kernel gives up, after
minutes. Keepalive probes find it where nothing is sent; TCP_USER_TIMEOUT where sent data is not acknowledged.
"""

import socket
import ssl
from typing import Any, Final

import aiohttp

DEAD_AFTER_S: Final = 10  # without an answer of the other end's kernel
IDLE_S: Final = 4  # before the first probe
INTERVAL_S: Final = 2  # between probes
PROBES: Final = 3
_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_AFTER_S * 1000),
)


def connect_socket(address: Any) -> socket.socket:
    """Return a socket for an address of `getaddrinfo`."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    if family in (socket.AF_INET, socket.AF_INET6):
        for level, option, value in _OPTIONS:
            made.setsockopt(level, option, value)
    return made


def connector(tls: ssl.SSLContext | None, most: int) -> aiohttp.TCPConnector:
    """Return a pool of at most this many connections, with these sockets."""
    return aiohttp.TCPConnector(limit=most, ssl=True if tls is None else tls, socket_factory=connect_socket)
