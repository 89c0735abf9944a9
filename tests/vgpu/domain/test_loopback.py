"""Which hosts are this machine itself."""

import pytest

from vgpu.domain import loopback


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("::ffff:10.0.0.1", False),
        ("::ffff:0.0.0.0", False),
        ("::", False),
        ("0.0.0.0", False),
        ("::2", False),
        ("fe80::1", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("[::1]", False),
        ("", False),
    ],
)
def test_an_address_of_either_family_is_judged_and_no_name_but_localhost(host: str, is_loopback: bool) -> None:
    assert loopback.is_loopback(host) == is_loopback
