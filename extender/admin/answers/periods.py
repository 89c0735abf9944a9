"""Periods of time: `7d`, `24h`, `30m` before now, or RFC 3339."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from extender.admin.problems import bad_field

LONGEST: Final = timedelta(days=3660)
_AGO: Final = re.compile(r"(\d{1,18})(s|m|h|d|w)", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
TOO_LONG_AGO: Final = f"must be at most {LONGEST.days} days ago"
FORM: Final = "must be a time before now such as 7d, 24h, 30m, or RFC 3339 such as 2026-11-22T00:00:00Z"


def read(since: str, until: str, now: datetime) -> tuple[datetime, datetime]:
    """Return the period's begin and end; an empty text is 7 days ago, or now. Raises AdminProblem."""
    begin = _time("since", since or "7d", now)
    end = _time("until", until, now) if until else now
    if begin >= now:
        raise bad_field("since", "must be before now")
    if begin >= end:
        raise bad_field("since", "must be before until")
    return begin, end


def ms(at: datetime) -> int:
    """Return Unix milliseconds."""
    return int(at.timestamp() * 1000)


def _time(field: str, text: str, now: datetime) -> datetime:
    if ago := _AGO.fullmatch(text):
        unit = timedelta(**{_UNITS[ago[2]]: 1})
        if int(ago[1]) > LONGEST // unit:
            raise bad_field(field, TOO_LONG_AGO)
        return now - int(ago[1]) * unit
    try:
        read_at = datetime.fromisoformat(text)
        at = (read_at if read_at.tzinfo else read_at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise bad_field(field, FORM) from None
    if at < now - LONGEST:
        raise bad_field(field, TOO_LONG_AGO)
    if at > now + LONGEST:
        latest = f"at most {LONGEST.days} days after now" if field == "until" else "before now"
        raise bad_field(field, f"must be {latest}")
    return at
