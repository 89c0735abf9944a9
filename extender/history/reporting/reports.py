"""The questions that the history answers, and the rows that it answers with.

Every method blocks while the database works, from milliseconds to a second: call it in a thread, never on the event
loop of the verbs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from extender.history.recording.events import Event, EventKind
from vgpu.domain.asks import right_size
from vgpu.domain.asks.right_size import AskedShare, RightSize
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName, PodUid


class Dimension(StrEnum):
    """What usage is grouped by."""

    NAMESPACE = "namespace"
    OWNER = "owner"  # KIND/NAME
    LABEL = "label"  # the value of one of the pods' labels
    CARD = "card"  # UUID
    MODEL = "model"
    NODE = "node"
    DAY = "day"  # in UTC: 2026-11-22


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """A dimension; `label` is the label's key for `Dimension.LABEL`, otherwise empty."""

    dimension: Dimension
    label: str = ""


@dataclass(frozen=True, slots=True)
class UsageFilters:
    """Which usage counts; None or an empty mapping: all.

    Attributes:
        namespaces: those that the caller may read, or asks for.
        owner: KIND/NAME.
        nodes: by name.
        cards: by UUID.
        models: by NVML's product name.
        labels: each pod's labels must have all of these.
    """

    namespaces: frozenset[Namespace] | None = None
    owner: str | None = None
    nodes: frozenset[NodeName] | None = None
    cards: frozenset[CardUuid] | None = None
    models: frozenset[str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Usage of one group.

    Attributes:
        group: a value for each dimension asked for, in that order; empty where a pod lacks the label.
        share_seconds: card-seconds: each share counts as the larger of its part of memory and of time. This is what
            costs: four quarter shares of a card for an hour are 3,600.
        gpu_seconds_asked: guaranteed GPU time; a whole card counts fully.
        gpu_seconds_used: measured GPU time; None where no node reported any.
        mib_hours: MiB times hours.
        waiting_seconds: from the creation of pods that were bound in the period to their Binding, together.
        bound: pods that were bound in the period.
        cost: in the currency of the prices; None where a card's model has no price.
    """

    group: tuple[str, ...]
    share_seconds: float
    gpu_seconds_asked: float
    gpu_seconds_used: float | None
    mib_hours: float
    waiting_seconds: float
    bound: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class HistoryFilters:
    """Which events are listed; None: all. Times are Unix milliseconds: `since_ms` <= time < `until_ms`.

    With `namespaces`, events without a namespace (of cards, and of administrators) are listed only if `namespaces`
    contains the empty text.
    """

    kinds: frozenset[EventKind] | None = None
    namespaces: frozenset[Namespace] | None = None
    pod: str | None = None  # name
    pod_uid: PodUid | None = None
    node: NodeName | None = None
    gpu: CardUuid | None = None  # UUID
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One stored event, with what it is found by. `id` is unique and increases in the order of storing."""

    id: int
    at_ms: int
    kind: EventKind
    namespace: Namespace
    event: Event


@dataclass(frozen=True, slots=True)
class EntryPage:
    """Entries, the latest first. `cursor` continues the list; empty where nothing is left."""

    entries: tuple[HistoryEntry, ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class RightSizeRow:
    """What a container of a workload asked for on a card, used, and should ask for.

    Attributes:
        namespace: of its pods.
        owner: KIND/NAME.
        container: its name.
        pods: number of pods that were measured.
        measured_s: seconds in which they were measured, together.
        asked: what the pod asks for that was measured last.
        found: what they used, all cards and pods together, and the advice.
    """

    namespace: Namespace
    owner: str
    container: ContainerName
    pods: int
    measured_s: float
    asked: AskedShare
    found: RightSize

    @property
    def unused_s(self) -> float:
        """Seconds of a whole card that were guaranteed and not used."""
        return right_size.unused_s(self.asked, self.found, self.measured_s)


@dataclass(frozen=True, slots=True)
class RightSizes:
    """Rows, the most measured time first. `is_complete`: whether every period was read; otherwise ask for less."""

    rows: tuple[RightSizeRow, ...]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """What was measured between two times, in Unix milliseconds.

    Attributes:
        from_ms: beginning.
        until_ms: end.
        used_ms: of a container, GPU time used; of a card, time in which it was busy.
        used_mib: memory in use at the end, or the most in an hour; None where it is not known, as for the rest.
        wait_ms: for how long launches waited, by `measured_use.WAIT_CAUSES`; empty where that is not known.
        celsius: temperature of the GPU.
        watts: power drawn.
    """

    from_ms: int
    until_ms: int
    used_ms: int
    used_mib: int | None = None
    wait_ms: tuple[int, ...] = ()
    celsius: int | None = None
    watts: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerSeries:
    """Figures of a container on a card, in order."""

    namespace: Namespace
    pod: str
    container: ContainerName
    gpu: CardUuid
    figures: tuple[MeasuredFigure, ...]


@dataclass(frozen=True, slots=True)
class PodSeries:
    """Series of containers. `is_complete`: whether every point was read; otherwise ask for a shorter time."""

    containers: tuple[ContainerSeries, ...]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class CardSeries:
    """Figures of a card, in order, and the series of the containers on it."""

    figures: tuple[MeasuredFigure, ...]
    containers: PodSeries


class Reports(Protocol):
    """Reads the history."""

    @property
    def currency(self) -> str:
        """The currency of costs; empty where the prices name none."""

    def stored_until_ms(self) -> int:
        """Return until when the history is stored, in Unix milliseconds: the extender stores a mark every 5 s.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def stored_since_ms(self) -> int:
        """Return when the history began, in Unix milliseconds; 0 where that is not known.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def usage(
        self, by: Sequence[UsageGroup], since_ms: int, until_ms: int, filters: UsageFilters = UsageFilters()
    ) -> list[UsageRow]:
        """Return usage from `since_ms` to `until_ms`, a row for each group, the largest `share_seconds` first.

        Without groups, one row for everything. Pods that still run count until `until_ms`, or until now if that is
        earlier.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def right_sizes(
        self, since_ms: int, until_ms: int, filters: UsageFilters = UsageFilters(), pod: str = ""
    ) -> RightSizes:
        """Return what containers used beside what they asked for; of one pod's name only, where `pod` is given.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def card_series(
        self,
        node: NodeName,
        gpu: CardUuid,
        since_ms: int,
        until_ms: int,
        namespaces: frozenset[Namespace] | None = None,
    ) -> CardSeries:
        """Return the figures of a card of a node, and of the containers of these namespaces (None: all) on it.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def pod_series(self, namespace: Namespace, name: str, since_ms: int, until_ms: int) -> PodSeries:
        """Return the figures of the containers of the latest pod of a name.

        Raises:
            HistoryUnavailable: the database does not answer.
        """

    def history(self, filters: HistoryFilters = HistoryFilters(), cursor: str = "", limit: int = 100) -> EntryPage:
        """Return up to `limit` (1 to 1,000) events, the latest first, from where `cursor` of the last page ended.

        Raises:
            MalformedCursor: `cursor` is not what a page returned.
            HistoryUnavailable: the database does not answer.
        """
