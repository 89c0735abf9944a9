"""Groups in space on cards, as the list of them has them: a row for each card that a group has members on (ADR 174)."""

import operator
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Final

from pydantic import Field

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures, grants, space_groups
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import OneOf
from extender.admin.answers.listed.space_groups import ListedGroup
from extender.admin.answers.paging import ListKind, Row
from extender.admin.exchange import sent_objects
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.state.fields.refused import RefusedPod
from extender.state.objects import WatchedPod
from vgpu.domain import names
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.cards.share import CardState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName
from vgpu.placement.snapshot import NodeView


class GroupState(StrEnum):
    """How a group on a card is, by what its node reports; of several that hold, the first."""

    UNSUPERVISED = "Unsupervised"
    NOT_READY = "NotReady"
    FAULTED = "Faulted"
    OUTSIDE = "Outside"
    SERVING = "Serving"


STATE: Final = Annotated[str, Field(pattern=f"^({'|'.join(GroupState)})$")]
_STATE_HELP: Final = (
    "Unsupervised: the card's node runs no supervisor of MPS daemons now; NotReady: a member waits for the group's "
    "daemon; Faulted: the MPS server has faulted in the last two minutes; Outside: processes of members are no clients "
    "of the server; else Serving"
)
_STATES: Final = {
    names.SPACE_NOT_READY: GroupState.NOT_READY,
    names.SPACE_SERVER_FAULTED: GroupState.FAULTED,
    names.SPACE_NOT_JOINED: GroupState.OUTSIDE,
}


@dataclass(frozen=True, slots=True)
class PlacedGroup:
    """A group on a card.

    Attributes:
        view: of the card's node.
        card: the card.
        group: which group it is.
        pods: those with members on the card, ordered by name.
        reports: what the node reports of these pods that concerns their group.
    """

    view: NodeView
    card: CardState
    group: SpaceGroup
    pods: tuple[WatchedPod, ...]
    reports: tuple[RefusedPod, ...]

    @property
    def state(self) -> GroupState:
        """How the group is."""
        if not self.card.card.serves_space:
            return GroupState.UNSUPERVISED
        found = {_STATES[report.reason] for report in self.reports}
        return next((state for state in GroupState if state in found), GroupState.SERVING)

    def has_rows_of(self, other: "PlacedGroup") -> bool:
        """Whether both are listed and ordered alike: they consist of the same versions of the same objects."""
        same_pods = len(self.pods) == len(other.pods) and all(map(operator.is_, self.pods, other.pods))
        is_on_same_card = self.card is other.card and sent_objects.is_same_view(self.view, other.view)
        return same_pods and is_on_same_card and self.reports == other.reports


class ListedPlacedGroup:
    """A group on a card in a snapshot, for a caller who sees the pods of some namespaces."""

    def __init__(self, placed: PlacedGroup, snapshot: ClusterSnapshot, sees: rows.Sees) -> None:
        self.placed = placed
        self.snapshot = snapshot
        self.sees = sees

    @cached_property
    def whole(self) -> ListedGroup:
        """The group with all of its members on the card."""
        uuid = self.placed.card.card.uuid
        members = (held for pod in self.placed.pods for held in grants.of_pod(pod, self.snapshot))
        return ListedGroup(self.placed.group, tuple(held for held in members if held.grant.gpu == uuid))

    @property
    def containers(self) -> list[Row]:
        """The members that the caller may see."""
        return [grants.tenant_row(held) for held in self.whole.members if self.sees(held.pod.namespace)]

    @property
    def faults(self) -> list[Row]:
        """What the node reports of the members that the caller may see."""
        pods = {pod.uid: pod for pod in self.placed.pods if self.sees(pod.namespace)}
        told = [(pods[report.uid], report) for report in self.placed.reports if report.uid in pods]
        return [_fault_row(pod, report) for pod, report in told]


def _fault_row(pod: WatchedPod, report: RefusedPod) -> Row:
    return columns.row(FAULT, (pod, report))


FAULT: Final[tuple[Column[tuple[WatchedPod, RefusedPod]], ...]] = (
    Column("namespace", Namespace, "", "default", lambda told: told[0].namespace),
    Column("pod", str, "", "train", lambda told: told[0].name),
    Column("reason", str, "SpaceNotReady, SpaceServerFaulted or SpaceNotJoined, as its Event has it",
           names.SPACE_SERVER_FAULTED, lambda told: told[1].reason),
    Column("message", str, "", NO_EXAMPLE, lambda told: told[1].message),
)  # fmt: skip


@described_by(FAULT, may_lack=False)
class GroupFaultSchema(AnswerSchema):
    """What a node reports of a pod that concerns the pod's group in space, on whichever of its cards."""


def _of_whole(column: Column[ListedGroup]) -> Column[ListedPlacedGroup]:
    """Return a column of groups in the rows of cards as one of this list."""
    is_sortable = column.name in ("spaceGroup", "namespace", "name", "members", "cores", "memoryMiB")
    chosen = OneOf("groups, as the rows name them", str) if column.name == "spaceGroup" else None
    shown = column.name, column.type, column.help, column.example
    return Column(*shown, lambda item: column.read(item.whole), is_sortable, chosen)


COLUMNS: Final[tuple[Column[ListedPlacedGroup], ...]] = (
    Column("node", NodeName, "", "node-1", lambda item: item.placed.view.name, sortable=True,
           filter=OneOf("names of nodes")),
    Column("index", int, "NVML's index of the card", 0, lambda item: item.placed.card.card.index, sortable=True),
    Column("uuid", CardUuid, "of the card", figures.UUID, lambda item: item.placed.card.card.uuid, sortable=True,
           filter=OneOf("UUIDs of cards")),
    *map(_of_whole, space_groups.COLUMNS),
    Column("state", str, _STATE_HELP, "Serving", lambda item: str(item.placed.state), sortable=True,
           filter=OneOf("how the groups are", STATE, len(GroupState))),
    Column("faults", list[GroupFaultSchema], "what the node reports of members that the caller may see", NO_EXAMPLE,
           lambda item: item.faults),
    Column("pods", list[grants.TenantSchema], "the members that the caller may see", NO_EXAMPLE,
           lambda item: item.containers),
    figures.stale_since(lambda item: item.placed.view.silent_since),
)  # fmt: skip


def kind(snapshot: ClusterSnapshot, sees: rows.Sees) -> ListKind[PlacedGroup]:
    """Return how groups are listed."""
    return columns.list_kind(
        COLUMNS,
        lambda placed: ListedPlacedGroup(placed, snapshot, sees),
        ("node", "index", "uuid", "spaceGroup"),
        name=lambda placed: (placed.view.name, placed.card.card.uuid, placed.group),
        same=PlacedGroup.has_rows_of,
    )


def of(snapshot: ClusterSnapshot) -> Iterator[PlacedGroup]:
    """Yield every group on every card that its node reports."""
    found = defaultdict[NodeName, dict[tuple[CardUuid, SpaceGroup], list[WatchedPod]]](dict)
    for pod in snapshot.pods.values():
        if group := _group_of_holder(pod):
            for uuid in _cards(pod):
                found[pod.node].setdefault((uuid, group), []).append(pod)
    for node, groups in found.items():
        view = snapshot.views.get(node)
        cards = {state.card.uuid: state for state in view.state.cards} if view else {}
        for (uuid, group), pods in groups.items():
            if view is not None and uuid in cards:
                yield _placed(view, cards[uuid], group, pods, snapshot)


def _placed(
    view: NodeView, card: CardState, group: SpaceGroup, pods: list[WatchedPod], snapshot: ClusterSnapshot
) -> PlacedGroup:
    gpunode, uids = snapshot.gpunodes.get(view.name), {pod.uid for pod in pods}
    refusals = gpunode.refusals if gpunode else ()
    reports = tuple(report for report in refusals if report.uid in uids and report.reason in _STATES)
    ordered = sorted(pods, key=lambda pod: (pod.namespace, pod.name))
    return PlacedGroup(view, card, group, tuple(ordered), reports)


def _group_of_holder(pod: WatchedPod) -> SpaceGroup | None:
    """Return the group of a pod that holds cards; None where it is in none."""
    return rows.space_group(pod) if pod.node and not pod.is_terminal else None


def _cards(pod: WatchedPod) -> set[CardUuid]:
    """Return the cards that containers of a pod hold; init containers that have ended hold none."""
    if not isinstance(pod.assignment, Assignment):
        return set()
    return {grant.gpu for _, granted in rows.held(pod) for grant in granted}


@described_by(COLUMNS)
class PlacedGroupSchema(AnswerSchema):
    """A group in space on a card."""
