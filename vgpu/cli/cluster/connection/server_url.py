"""Which URLs a client may send what to: only to this machine itself a token goes without TLS."""

import re
import urllib.parse
from typing import Final

from vgpu.cli.failure import WRONG_USAGE, CommandFailed
from vgpu.domain import loopback

SCHEMES: Final = ("http", "https")
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
    """Whether a URL that `check` accepts names this machine itself."""
    return loopback.is_loopback(urllib.parse.urlsplit(url).hostname or "")
