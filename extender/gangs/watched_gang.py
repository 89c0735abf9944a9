"""What the watch shows of a gang at one time. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from extender.state.gang_members import GangKey
from extender.state.objects import WatchedPod
from extender.state.pod_groups import PodGroup
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource


@dataclass(frozen=True, slots=True)
class WatchedGang:
    """A gang.

    Attributes:
        key: namespace, what names the gang, name.
        size: how many members start together; None where it is not known.
        problem: why the size is not known.
        deadline_s: how long its members wait for each other, where its PodGroup says so.
        bound: members that hold cards, and are not being deleted.
        waiting: members that can be placed: kube-scheduler may ask for them, and what they ask for is clear.
        others: number of members that need no card.
        unplaceable: number of members that cannot be placed: with scheduling gates, with affinity to other pods' cards
            (a plan does not look at it), or not admitted.
    """

    key: GangKey
    size: int | None
    problem: str
    bound: tuple[WatchedPod, ...] = ()
    waiting: tuple[WatchedPod, ...] = ()
    others: int = 0
    unplaceable: int = 0
    deadline_s: int | None = None

    @property
    def present(self) -> int:
        """Number of members that run or can be placed."""
        return len(self.bound) + len(self.waiting) + self.others

    @property
    def missing(self) -> int:
        """How many more members the gang needs; 0 where the size is not known."""
        return max(0, (self.size or 0) - self.present)

    @property
    def is_complete(self) -> bool:
        """Whether as many members are present as the gang has."""
        return self.size is not None and self.present >= self.size

    @property
    def is_bound(self) -> bool:
        """Whether as many members are bound as the gang has."""
        return self.size is not None and len(self.bound) + self.others >= self.size

    @property
    def needs(self) -> int:
        """How many members are still to be bound before the gang has started."""
        return max(0, (self.size or 0) - self.others - len(self.bound))


class Role(Enum):
    """What a pod is to its gang."""

    GONE = auto()  # it has ended, or is being deleted
    OTHER = auto()  # it needs no card
    BOUND = auto()
    WAITING = auto()
    UNPLACEABLE = auto()


def role(pod: WatchedPod, slice_mib: int) -> Role:
    """Return what a pod is to its gang, as long as the pod does not change."""
    if pod.is_terminal or pod.scheduling.is_terminating:
        return Role.GONE
    if pod.parsed.request is None:
        return Role.OTHER
    if pod.node:
        return Role.BOUND
    return Role.WAITING if _is_placeable(pod, slice_mib) else Role.UNPLACEABLE


def of(key: GangKey, members: Iterable[tuple[WatchedPod, Role]], pod_group: PodGroup | None) -> WatchedGang:
    """Return a gang; `pod_group` is its PodGroup, where it has one."""
    by_role: dict[Role, list[WatchedPod]] = {role_: [] for role_ in Role}
    for pod, its_role in members:
        by_role[its_role].append(pod)
    bound, waiting = tuple(by_role[Role.BOUND]), tuple(by_role[Role.WAITING])
    size, problem = _size(key, waiting or bound, pod_group)
    deadline_s = pod_group.timeout_s if pod_group else None
    others, unplaceable = len(by_role[Role.OTHER]), len(by_role[Role.UNPLACEABLE])
    return WatchedGang(
        key=key,
        size=size,
        problem=problem,
        bound=bound,
        waiting=waiting,
        others=others,
        unplaceable=unplaceable,
        deadline_s=deadline_s,
    )


def _is_placeable(pod: WatchedPod, slice_mib: int) -> bool:
    request = pod.parsed.request
    is_free = request is not None and not request.options.affinity and not request.options.anti_affinity
    return is_free and not pod.scheduling.is_gated and not pod.parsed.problems and pod.is_admitted(slice_mib)


def _size(key: GangKey, pods: Iterable[WatchedPod], pod_group: PodGroup | None) -> tuple[int | None, str]:
    """Return the size, or why there is none. The pods that wait decide: a gang may be made anew with another size."""
    namespace, source, name = key
    if source is not GangSource.ANNOTATION:
        if pod_group is None:
            return None, f"PodGroup {namespace}/{name} does not exist, or cannot be read"
        return pod_group.size, pod_group.problem
    sizes = sorted({pod.parsed.gang.size for pod in pods if pod.parsed.gang and pod.parsed.gang.size})
    if len(sizes) > 1:
        return None, f"its pods name different sizes in {names.GANG_SIZE}: {', '.join(map(str, sizes))}"
    return (sizes[0], "") if sizes else (None, "none of its pods can be placed")
