"""Times as answers have them: RFC 3339 in whole seconds."""

from datetime import UTC, datetime


def text(unix_ms: int) -> str:
    """Write Unix milliseconds; an empty text for 0, which is unknown."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(timespec="seconds") if unix_ms else ""
