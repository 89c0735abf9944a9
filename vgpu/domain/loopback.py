"""Which hosts are this machine itself: only its own programs reach them, and what is sent to them leaves no machine."""

import ipaddress
from typing import Final

LOCALHOST: Final = "localhost"


def is_loopback(host: str) -> bool:
    """Whether a host is `localhost` or a loopback address; an IPv6 address is written without brackets.

    An IPv6 address that contains an IPv4 address, `::ffff:127.0.0.1`, is judged by that. A name that only begins with a
    loopback address, or with `localhost`, is another machine's.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == LOCALHOST
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
