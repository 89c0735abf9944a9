"""What the watch shows of each gang, and what is remembered of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from extender.gangs import watched_gang
from extender.gangs.gang_progress import GangProgress
from extender.gangs.plan import GangPlan
from extender.gangs.watched_gang import Role, WatchedGang
from extender.state.cluster import Cluster
from extender.state.gang_members import GangKey, key_of
from extender.state.objects import WatchedPod
from extender.state.pod_groups import PodGroup, PodGroups
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.identifiers import Namespace, PodUid

MAX_IMPOSSIBLE: Final = 16
PHASES: Final = ("waiting", "planned", "partial", "started")


@dataclass(frozen=True, slots=True)
class GangTimes:
    """The clocks, and how long a gang may be planned or bound in part.

    Attributes:
        clock: monotonic, in seconds.
        now_ms: the wall clock in Unix milliseconds.
        deadline_s: of a plan, and of a part that is bound.
    """

    clock: Callable[[], float]
    now_ms: Callable[[], int]
    deadline_s: float


class KnownGangs:
    """The gangs that have members. `changed` takes the key of each gang whose PodGroup changes.

    A gang is put together again after each change, and a pod is looked at once for each of its versions: a gang has up
    to 256 pods, and each of them changes several times.
    """

    def __init__(self, cluster: Cluster, times: GangTimes, changed: Callable[[GangKey], None]) -> None:
        self.cluster = cluster
        self.times = times
        self.pod_groups: Mapping[GangSource, PodGroups] = {
            source: PodGroups(source, changed) for source in (GangSource.COSCHEDULING, GangSource.KUBERNETES)
        }
        self._progress: dict[GangKey, GangProgress] = {}
        self._watched: dict[GangKey, WatchedGang] = {}
        self._roles: dict[GangKey, dict[PodUid, tuple[WatchedPod, Role]]] = {}

    def watched(self, key: GangKey) -> WatchedGang:
        """Return what the watch shows of a gang now."""
        found = self._watched.get(key)
        if found is None:
            found = watched_gang.of(key, self._with_roles(key), self._pod_group(key))
            if self.members(key):
                self._watched[key] = found
        return found

    def changed(self, key: GangKey) -> None:
        """Take that a gang's pods or its PodGroup have changed."""
        self._watched.pop(key, None)

    def deadline_s(self, key: GangKey) -> float:
        """Return for how long a gang is planned, or bound in part."""
        return self.watched(key).deadline_s or self.times.deadline_s

    def members(self, key: GangKey) -> Mapping[PodUid, WatchedPod]:
        """Return a gang's pods by UID."""
        return self.cluster.objects.gangs.of(key)

    def get(self, key: GangKey) -> GangProgress:
        """Return what is remembered of a gang; an empty progress where nothing is."""
        return self._progress.get(key) or GangProgress()

    def find(self, key: GangKey) -> GangProgress | None:
        """Return what is remembered of a gang, None where nothing is."""
        return self._progress.get(key)

    def open(self, key: GangKey) -> GangProgress:
        """Return what is remembered of a gang, from now on if nothing was."""
        return self._progress.setdefault(key, GangProgress())

    def forget(self, key: GangKey) -> None:
        """Take that a gang has no members."""
        self._progress.pop(key, None)
        self._watched.pop(key, None)
        self._roles.pop(key, None)

    def plan_of(self, pod: WatchedPod) -> GangPlan | None:
        """Return the plan of a pod's gang."""
        key = key_of(pod)
        return self.get(key).plan if key is not None else None

    def timed(self) -> Iterator[tuple[GangKey, GangProgress]]:
        """Iterate over the gangs, as they are now, for which something is to be done at a certain time."""
        return iter([(key, progress) for key, progress in self._progress.items() if progress.is_timed])

    def all(self) -> Iterator[tuple[GangKey, GangProgress]]:
        """Iterate over all gangs, as they are now."""
        return iter(list(self._progress.items()))

    def impossible(self) -> Iterator[tuple[GangKey, int]]:
        """Iterate over the gangs that do not fit the cards that exist, with when that was found, Unix milliseconds.

        At most 16 of each namespace: people read them.
        """
        counted = Counter[Namespace]()
        for key, progress in self._progress.items():
            if progress.impossible_since_ms and counted[key[0]] < MAX_IMPOSSIBLE:
                counted[key[0]] += 1
                yield key, progress.impossible_since_ms

    def count_by_phase(self) -> dict[str, int]:
        """Return how many gangs are in each phase."""
        found = dict.fromkeys(PHASES, 0)
        for progress in self._progress.values():
            found[progress.phase] += 1
        return found

    def _with_roles(self, key: GangKey) -> Iterable[tuple[WatchedPod, Role]]:
        members, before = self.members(key), self._roles.get(key, {})
        found = {}
        for uid, pod in members.items():
            known = before.get(uid)
            is_known = known is not None and known[0] is pod
            found[uid] = known if known and is_known else (pod, watched_gang.role(pod, self.cluster.slice_mib))
        if members:
            self._roles[key] = found
        return found.values()

    def _pod_group(self, key: GangKey) -> PodGroup | None:
        groups = self.pod_groups.get(key[1])
        return groups.get(key) if groups is not None else None
