"""The Leases that the watch shows, and whether each was renewed in time by this program's own clock.

The clocks of the programs that renew Leases are not trusted: a Lease is fresh for its duration after this program saw
it change.
"""

from collections.abc import Callable, Collection

from extender.state.objects import WatchedLease


class Leases:
    """The Leases of one namespace. `clock` is monotonic, in seconds.

    `changed` takes the name of each Lease that is new, changed or gone.
    """

    def __init__(self, clock: Callable[[], float], changed: Callable[[str], None] = lambda _: None) -> None:
        self._clock = clock
        self._changed = changed
        self._seen: dict[str, tuple[WatchedLease, float]] = {}

    def put(self, lease: WatchedLease) -> None:
        """Store a Lease, with the time of its last change."""
        before, _ = self._seen.get(lease.name, (None, 0.0))
        if before != lease:
            self._seen[lease.name] = (lease, self._clock())
            self._changed(lease.name)

    def remove(self, name: str) -> None:
        """Remove a deleted Lease."""
        if self._seen.pop(name, None) is not None:
            self._changed(name)

    def names(self) -> Collection[str]:
        """Return the names of all Leases."""
        return self._seen.keys()

    def get(self, name: str) -> WatchedLease | None:
        """Return a Lease, or None where there is none."""
        return self._seen[name][0] if name in self._seen else None

    def term(self, name: str) -> tuple[float, float | None]:
        """Return when a Lease changed last, and its duration in seconds: None where it has no holder."""
        lease, changed = self._seen.get(name, (None, 0.0))
        return changed, lease.duration_s if lease is not None and lease.holder else None

    def life(self, name: str) -> tuple[bool, float]:
        """Return whether a Lease is fresh, and when it changed last."""
        return self.is_fresh(name), self.term(name)[0]

    def silent_since(self, name: str) -> str:
        """Return when the holder of a Lease renewed it last, by its own clock; empty where it is fresh, or unknown."""
        lease = self.get(name)
        return "" if lease is None or self.is_fresh(name) else lease.renewed

    def holder(self, name: str) -> str:
        """Return a Lease's holder; empty where there is none."""
        lease = self.get(name)
        return lease.holder if lease else ""

    def is_fresh(self, name: str) -> bool:
        """Whether a Lease has a holder, and was renewed within its duration."""
        changed, duration_s = self.term(name)
        return duration_s is not None and self._clock() - changed <= duration_s
