"""Sockets for IPv4 and IPv6."""

import errno
import socket

import pytest

from vgpu.adapters import listening
from vgpu.adapters.listening import ListenAddress


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


class WithoutIpv6(socket.socket):
    """A socket of a kernel that was started with `ipv6.disable=1`."""

    def __init__(self, family: int = -1, kind: int = -1) -> None:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        super().__init__(family, kind)


class WithoutAddresses(socket.socket):
    """A socket of a kernel whose addresses of IPv6 are disabled by a sysctl."""

    def bind(self, address: object) -> None:
        if self.family == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        super().bind(address)  # type: ignore[arg-type]


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@needs_ipv6
@pytest.mark.parametrize(
    ("host", "reached"),
    [
        ("::", {"127.0.0.1", "::1"}),
        ("::1", {"::1"}),
        ("0.0.0.0", {"127.0.0.1"}),
        ("127.0.0.1", {"127.0.0.1"}),
        ("::ffff:127.0.0.1", {"127.0.0.1"}),
    ],
)
def test_an_address_is_reached_by_the_families_that_it_names(host: str, reached: set[str]) -> None:
    with listening.listen(host, 0) as listener:
        port = listener.getsockname()[1]
        assert {address for address in listening.LOOPBACK if connects(address, port)} == reached


@pytest.mark.parametrize("kind", [WithoutIpv6, WithoutAddresses])
def test_without_ipv6_both_families_are_ipv4(kind: type[socket.socket]) -> None:
    with listening.bind("::", 0, kind) as listener:
        assert listener.family == socket.AF_INET
        assert connects("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(OSError, match="ddress"):
        listening.bind("::1", 0, kind)


def test_a_port_that_is_taken_is_an_error_of_either_family() -> None:
    with listening.listen("0.0.0.0", 0) as listener:
        port = listener.getsockname()[1]
        for host in ("0.0.0.0", "::"):
            with pytest.raises(OSError, match="in use"):
                listening.listen(host, port)


@pytest.mark.parametrize("text", ["127.0.0.1:80", "[::1]:0", "[::]:65535", "[::ffff:127.0.0.1]:1", "[fe80::1%lo]:1"])
def test_an_address_is_read_and_written(text: str) -> None:
    assert listening.parse(str(listening.parse(text))) == listening.parse(text)


def test_an_ipv6_address_has_brackets() -> None:
    assert str(ListenAddress("::1", 80)) == "[::1]:80"
    assert str(ListenAddress("127.0.0.1", 80)) == "127.0.0.1:80"
    assert listening.parse("[::1]:80") == ListenAddress("::1", 80)
    with pytest.raises(ValueError, match="brackets"):
        listening.parse("::1:80")
