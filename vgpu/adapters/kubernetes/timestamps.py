"""The formats of times in Kubernetes objects."""

from datetime import UTC, datetime


def seconds(now: datetime) -> str:
    """Write `metav1.Time`: whole seconds of UTC."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micros(now: datetime) -> str:
    """Write `metav1.MicroTime`: microseconds of UTC."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
