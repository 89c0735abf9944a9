"""ETags: a client that polls gets 304 Not Modified where nothing has changed (RFC 9110, 8.8.3 and 13.1.2)."""

import hashlib


def of(body: bytes, coding: str = "") -> str:
    """Return the ETag of a content; each content coding of it has an ETag of its own."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}{coding and f"-{coding}"}"'


def is_known(etag: str, if_none_match: str) -> bool:
    """Whether a request's If-None-Match names the ETag."""
    return etag in {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
