"""Times as Kubernetes writes them: `2026-01-01T00:00:01Z`, in whole seconds."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

MAX_LENGTH: Final = 35  # of a time with nanoseconds and an offset


def milliseconds(value: object) -> int:
    """Return a time as Unix milliseconds; 0 where it is missing or cannot be read: users write pods."""
    return _parsed(value) if isinstance(value, str) and len(value) <= MAX_LENGTH else 0


@lru_cache(maxsize=1 << 10)  # a pod has the same times in each of its versions, and a crowd starts in the same seconds
def _parsed(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def text(unix_ms: int) -> str:
    """Write Unix milliseconds as RFC 3339 in whole seconds; an empty text for 0, which is unknown."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds") if unix_ms else ""
