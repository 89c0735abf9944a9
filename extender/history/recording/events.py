"""The events that make up the history: immutable values, with Unix times in milliseconds.

`key()` identifies an event: two events of one kind with equal keys are one, whoever reports them and how often; if they
differ, the one with the higher `rank()` is stored. Pods are keyed by their UID, because a recreated pod has the same
name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from vgpu.domain.identifiers import NO_NODE, UNNAMED_CARD, CardUuid, ContainerName, Namespace, NodeName, PodUid


class DecisionSource(StrEnum):
    """Where a decision is known from."""

    BIND = "bind"  # this extender bound the pod: time and reasons are known
    WATCH = "watch"  # a watch showed the pod bound: the time is the pod's condition PodScheduled, in whole seconds


class CardChange(StrEnum):
    """What changed about a card."""

    ADDED = "added"
    REMOVED = "removed"
    UNHEALTHY = "unhealthy"
    HEALTHY = "healthy"
    CORDONED = "cordoned"
    UNCORDONED = "uncordoned"
    MODE = "mode"


class Unranked:
    """An event that is known in one way only."""

    __slots__ = ()

    def rank(self) -> int:
        """Of events with equal keys, the first one stays."""
        return 0


@dataclass(frozen=True, slots=True)
class PodName:
    """A pod."""

    uid: PodUid
    namespace: Namespace
    name: str


@dataclass(frozen=True, slots=True)
class PodOwner:
    """What created a pod: a Deployment, a Job, a StatefulSet; of kind `Pod`, with the pod's name, if nothing did."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ContainerShare:
    """A container's share of one card; `cores` is percent of the card's time, None if none was asked for."""

    container: ContainerName
    gpu: CardUuid
    memory_mib: int
    cores: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class CardShare:
    """What a pod takes of one card: the larger of its phases, as placement counts (`vgpu.domain.grants.usage`).

    Attributes:
        gpu: UUID of the card.
        index: NVML's index on the node.
        model: NVML's product name.
        card_mib: memory of the card, in MiB.
        memory_mib: MiB that the pod takes.
        cores: percent of the card's time that is guaranteed.
        whole: whether the pod holds the card whole.
    """

    gpu: CardUuid
    index: int
    model: str
    card_mib: int
    memory_mib: int
    cores: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A pod was bound.

    Attributes:
        pod: the pod.
        node: where it was bound to.
        at_ms: when the Binding was carried out.
        created_ms: when the pod was created; the difference is the waiting time. 0 if unknown.
        owner: what created the pod.
        labels: the pod's labels, at most 32, without those that only name an instance.
        containers: each container's share of each of its cards.
        cards: what the pod takes of each card.
        refused: nodes refused at the last filter before the Binding, by reason code.
        source: where the decision is known from.
        group: the pod's group in space; empty where it is in none.
    """

    pod: PodName
    node: NodeName
    at_ms: int
    created_ms: int
    owner: PodOwner
    labels: Mapping[str, str]
    containers: tuple[ContainerShare, ...]
    cards: tuple[CardShare, ...]
    refused: Mapping[str, int] = field(default_factory=dict)
    source: DecisionSource = DecisionSource.BIND
    group: str = ""

    def key(self) -> tuple[str, ...]:
        """A pod is bound at most once."""
        return (self.pod.uid,)

    def rank(self) -> int:
        """Of one decision, what bind knows replaces what a watch showed."""
        return 1 if self.source is DecisionSource.BIND else 0


@dataclass(frozen=True, slots=True)
class Refusals(Unranked):
    """A summary: no node could take a pod, from `since_ms` to `until_ms`, in `attempts` calls of filter.

    `reasons` counts nodes by reason code in the last attempt; `message` says what the pod needs and what cards have.
    """

    pod: PodName
    since_ms: int
    until_ms: int
    attempts: int
    reasons: Mapping[str, int]
    message: str = ""

    @property
    def at_ms(self) -> int:
        """The time of the last attempt."""
        return self.until_ms

    def key(self) -> tuple[str, ...]:
        """Periods of one pod begin at different times."""
        return (self.pod.uid, str(self.since_ms))


@dataclass(frozen=True, slots=True)
class Start(Unranked):
    """A container was started for the first time."""

    pod: PodName
    node: NodeName
    container: ContainerName
    at_ms: int

    def key(self) -> tuple[str, ...]:
        """A container has one first start."""
        return (self.pod.uid, self.container)


@dataclass(frozen=True, slots=True)
class Restart(Unranked):
    """A container was started again, for the `count`th time; the exit before it has its code and the kubelet's reason.

    `ended_ms` is when the run before ended, 0 if unknown.
    """

    pod: PodName
    node: NodeName
    container: ContainerName
    at_ms: int
    count: int
    ended_ms: int = 0
    exit_code: int | None = None
    reason: str = ""

    def key(self) -> tuple[str, ...]:
        """The kubelet counts the restarts of each container."""
        return (self.pod.uid, self.container, str(self.count))


@dataclass(frozen=True, slots=True)
class End:
    """A container ended for good, or, with an empty `container`, the pod did, and its cards are free.

    Attributes:
        pod: the pod.
        node: where it ran.
        container: the container's name; empty for the pod.
        after_ms: the earliest time at which it can have ended; equal to `at_ms` where the end was seen.
        at_ms: the latest time at which it can have ended.
        exit_code: the container's; None if unknown.
        reason: the kubelet's reason, such as `OOMKilled`, or the pod's phase, or `Deleted`.
    """

    pod: PodName
    node: NodeName
    container: ContainerName
    after_ms: int
    at_ms: int
    exit_code: int | None = None
    reason: str = ""

    @property
    def is_interval(self) -> bool:
        """Whether nobody saw the end, so that it lies between `after_ms` and `at_ms`."""
        return self.after_ms < self.at_ms

    def key(self) -> tuple[str, ...]:
        """A container, and a pod, ends once."""
        return (self.pod.uid, self.container)

    def rank(self) -> int:
        """Of one end, the shorter interval replaces the longer one: two replicas may know it with other accuracy."""
        return self.after_ms - self.at_ms


@dataclass(frozen=True, slots=True)
class Resize(Unranked):
    """A running container's share of one card was changed; the figures are those after the change."""

    pod: PodName
    node: NodeName
    at_ms: int
    share: ContainerShare
    card: CardShare

    def key(self) -> tuple[str, ...]:
        """A share is changed once in a millisecond at most."""
        return (self.pod.uid, self.share.container, self.share.gpu, str(self.at_ms))


@dataclass(frozen=True, slots=True)
class Used:
    """GPU time that a container used on one card, as its node measured it.

    A period grows until its hour is over, or the container ends: of two records with one key the longer one is stored.

    Attributes:
        pod_uid: UID of the pod; it counts only if the pod is bound to `node`.
        node: the node that reports.
        container: name of the container.
        gpu: UUID of the card.
        from_ms: beginning of the period.
        until_ms: until when it was measured.
        gpu_ms: GPU time in the period.
        peak_mib: the most memory that the container has used.
        levels: histogram of the period's minutes by percent of the card's time (`vgpu.domain.cards.measured_use`).
        used_mib: memory in use at `until_ms`.
        wait_ms: for how long launches waited in the period, by cause (WAIT_CAUSES there).
    """

    pod_uid: PodUid
    node: NodeName
    container: ContainerName
    gpu: CardUuid
    from_ms: int
    until_ms: int
    gpu_ms: int
    peak_mib: int = 0
    levels: tuple[int, ...] = ()
    used_mib: int = 0
    wait_ms: tuple[int, ...] = ()

    @property
    def at_ms(self) -> int:
        """The end of the period."""
        return self.until_ms

    def key(self) -> tuple[str, ...]:
        """Periods of one container on one card do not overlap."""
        return (self.pod_uid, self.node, self.container, self.gpu, str(self.from_ms))


@dataclass(frozen=True, slots=True)
class CardMeasured:
    """How long a card was busy, as its node measured it, in a period that grows until its hour is over.

    Attributes:
        node: the node that reports.
        gpu: UUID of the card.
        from_ms: beginning of the period.
        until_ms: until when it was measured.
        busy_ms: time in the period in which the card was busy.
        used_mib: memory in use at `until_ms`; None where the card does not tell, as for the next two.
        celsius: temperature of the GPU.
        watts: power drawn.
    """

    node: NodeName
    gpu: CardUuid
    from_ms: int
    until_ms: int
    busy_ms: int
    used_mib: int | None = None
    celsius: int | None = None
    watts: int | None = None


@dataclass(frozen=True, slots=True)
class CardEvent(Unranked):
    """Something changed about a card; `version` is the resourceVersion of the GPUNode that showed the change."""

    node: NodeName
    gpu: CardUuid
    index: int
    model: str
    at_ms: int
    change: CardChange
    detail: str = ""
    version: int = 0

    def key(self) -> tuple[str, ...]:
        """All replicas see a change in the same version of the GPUNode."""
        return (self.node, self.gpu, self.change, str(self.version))


@dataclass(frozen=True, slots=True)
class AdminAction(Unranked):
    """An administrator changed something through the REST API, or was refused.

    Attributes:
        id: unique, chosen by the REST API for each request.
        at_ms: when.
        user: who asked, as the API server authenticated them.
        verb: what was asked for, such as `cordon`.
        node: the node that it is about; may be empty.
        gpu: the card that it is about; may be empty.
        outcome: `done`, or why not.
        detail: parameters, for people.
    """

    id: str
    at_ms: int
    user: str
    verb: str
    node: NodeName = NO_NODE
    gpu: CardUuid = UNNAMED_CARD
    outcome: str = "done"
    detail: str = ""

    def key(self) -> tuple[str, ...]:
        """Each request has its own ID."""
        return (self.id,)


@dataclass(frozen=True, slots=True)
class Gap(Unranked):
    """Events that were not recorded, because the spill was full or could not be written."""

    replica: str
    from_ms: int
    at_ms: int
    events: int

    def key(self) -> tuple[str, ...]:
        """A replica has one gap at a time."""
        return (self.replica, str(self.from_ms))


@dataclass(frozen=True, slots=True)
class Watched:
    """A mark: at `at_ms` the replica's watches showed the cluster as it was. What ended later was not seen."""

    replica: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A mark: the bound pods that the first list of a replica contained.

    A pod that was bound before `before_ms`, when the replica was started, and is not in `uids` had ended by `at_ms`.
    """

    replica: str
    before_ms: int
    at_ms: int
    uids: frozenset[PodUid]


Event = Decision | Refusals | Start | Restart | End | Resize | CardEvent | AdminAction | Gap
Record = Event | Used | CardMeasured | Watched | Listed  # what the spill contains; only events are listed by reports


class EventKind(StrEnum):
    """The kind of an event, as it is stored and filtered by."""

    DECISION = "decision"
    REFUSALS = "refusals"
    START = "start"
    RESTART = "restart"
    END = "end"
    RESIZE = "resize"
    CARD = "card"
    ADMIN = "admin"
    GAP = "gap"


KINDS: Final[Mapping[type[Event], EventKind]] = {
    Decision: EventKind.DECISION,
    Refusals: EventKind.REFUSALS,
    Start: EventKind.START,
    Restart: EventKind.RESTART,
    End: EventKind.END,
    Resize: EventKind.RESIZE,
    CardEvent: EventKind.CARD,
    AdminAction: EventKind.ADMIN,
    Gap: EventKind.GAP,
}
