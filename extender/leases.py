"""The Leases that the watch shows, and whether each was renewed in time by this program's own clock.

The clocks of the programs that renew Leases are not trusted: a Lease is fresh for its duration after this program saw
it change.
"""

from collections.abc import Callable, Collection

from extender.objects import Lease


class Leases:
    """Every Lease of our namespace. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[Lease, float]] = {}

    def put(self, lease: Lease) -> None:
        """Store a Lease, with the time of its last change."""
        before, changed = self._seen.get(lease.name, (None, 0.0))
        self._seen[lease.name] = (lease, changed if before == lease else self._clock())

    def remove(self, name: str) -> None:
        """Remove a deleted Lease."""
        self._seen.pop(name, None)

    def names(self) -> Collection[str]:
        """Return the names of all Leases."""
        return self._seen.keys()

    def get(self, name: str) -> Lease | None:
        """Return a Lease, or None where there is none."""
        return self._seen[name][0] if name in self._seen else None

    def holder(self, name: str) -> str:
        """Return a Lease's holder; empty where there is none."""
        lease = self.get(name)
        return lease.holder if lease else ""

    def is_fresh(self, name: str) -> bool:
        """Whether a Lease has a holder, and was renewed within its duration."""
        lease, changed = self._seen.get(name, (None, 0.0))
        return lease is not None and bool(lease.holder) and self._clock() - changed <= lease.duration_s
