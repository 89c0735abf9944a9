"""Which URLs a client may send what to: only to this machine itself a token goes without TLS."""

import ipaddress
import re
import urllib.parse
from typing import Final

from vgpu.cli.failure import WRONG_USAGE, CommandFailed

SCHEMES: Final = ("http", "https")
LOCALHOST: Final = "localhost"
_SITE: Final = re.compile(r"(?:\[[^][@]+\]|[^][@:]+)(?::\d+)?")  # no user: urllib would look it up as part of the name


def check(url: str, option: str, token: str) -> None:
    """Raise CommandFailed unless requests can go to this URL, with this token where it is not empty.

    `option` says where the URL was given, as `--server`.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        is_usable = parts.scheme in SCHEMES and bool(_SITE.fullmatch(parts.netloc)) and parts.port != 0
    except ValueError:  # no IPv6 address between the brackets, or no number after the colon
        is_usable = False
    if not is_usable:
        raise CommandFailed(f"{option}: {url}: must be an http or https URL of a host", WRONG_USAGE)
    if not (token.isascii() and token.isprintable()):
        raise CommandFailed(f"{option}: the token for it has characters that no header can have", WRONG_USAGE)
    if token and parts.scheme == "http" and not is_loopback(url):
        raise CommandFailed(
            f"{option}: a token is not sent without TLS to another machine; write https://", WRONG_USAGE
        )


def is_loopback(url: str) -> bool:
    """Whether a URL that `check` accepts names this machine itself: `localhost`, or a loopback address.

    A name that only begins with one, such as `localhost.example.org`, is another machine's.
    """
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == LOCALHOST
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
