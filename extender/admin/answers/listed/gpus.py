"""Cards, as lists have them."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures, grants, space_groups
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import AtLeast, Flag, OneOf
from extender.admin.answers.paging import ListKind, Row
from extender.admin.exchange import sent_objects
from extender.admin.exchange.snapshots import ClusterSnapshot
from vgpu.domain.cards.share import CardState
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName
from vgpu.domain.quantity import FULL_CORES
from vgpu.placement.snapshot import NodeView

Gpu = tuple[NodeView, CardState]


class ListedCard:
    """A card in a snapshot, for a caller who sees the pods of some namespaces."""

    def __init__(self, gpu: Gpu, snapshot: ClusterSnapshot, sees: rows.Sees = lambda _: False) -> None:
        self.view, self.state = gpu
        self.card = self.state.card
        self.snapshot = snapshot
        self.sees = sees

    @cached_property
    def used(self) -> Row:
        """What is used of it."""
        return rows.used_on(self.view.name, self.card.uuid, self.snapshot)

    @property
    def namespaces(self) -> list[Namespace]:
        """The namespaces of its pods that the caller may see."""
        holders = self.snapshot.holders(self.view.name, self.card.uuid)
        return sorted({pod.namespace for pod in holders if self.sees(pod.namespace)})


COLUMNS: Final[tuple[Column[ListedCard], ...]] = (
    Column("uuid", CardUuid, "", figures.UUID, lambda gpu: gpu.card.uuid, sortable=True),
    Column("node", NodeName, "", "node-1", lambda gpu: gpu.view.name, sortable=True, filter=OneOf("names of nodes")),
    Column("rack", str, "of the node, by its label vgpu.io/rack; empty: no label says it", "r1",
           lambda gpu: gpu.view.rack, sortable=True, filter=OneOf("racks of nodes", str)),
    Column("index", int, "", 0, lambda gpu: gpu.card.index, sortable=True),
    Column("model", str, "", "NVIDIA H100 80GB HBM3", lambda gpu: gpu.card.model, sortable=True,
           filter=OneOf("product names, as NVML writes them", str)),
    Column("memoryMiB", int, "", 81_538, lambda gpu: gpu.card.memory_mib, sortable=True),
    Column("allocatedMiB", int, "held by containers", 8192, lambda gpu: rows.allocated_mib(gpu.state), sortable=True),
    Column("freeMiB", int, "0 on a card that cannot be used", 73_346, lambda gpu: rows.usable_mib(gpu.view, gpu.state),
           sortable=True, filter=AtLeast("minFreeMiB", "the least free MiB")),
    Column("allocatedCores", int, "percent of its time", 30, lambda gpu: rows.allocated_cores(gpu.state),
           sortable=True),
    Column("freeCores", int, "", 70, lambda gpu: rows.usable_cores(gpu.view, gpu.state), sortable=True,
           filter=AtLeast("minFreeCores", "the least free percent of time", FULL_CORES)),
    Column("shares", int, "containers with a share of the card", 1, lambda gpu: gpu.state.usage.shares, sortable=True),
    Column("heldWhole", bool, "a container holds the whole card", NO_EXAMPLE, lambda gpu: gpu.state.is_held_whole),
    Column("healthy", bool, "", NO_EXAMPLE, lambda gpu: gpu.card.healthy, sortable=True,
           filter=Flag("whether the card can be given to new containers")),
    Column("reason", str, "why the card is unhealthy", NO_EXAMPLE, lambda gpu: gpu.card.reason),
    Column("nodeReason", str, "why no pod can use the card's node now", "PluginAway",
           lambda gpu: str(gpu.view.unusable or "")),
    Column("countsOn", NodeName, "the node that the card counts on, where that is another one that reports it too: the "
           "card is closed here (DuplicateUUID) and part of no total", NO_EXAMPLE, lambda gpu: gpu.card.counts_on),
    Column("cordoned", bool, "no new containers on the card", NO_EXAMPLE, lambda gpu: gpu.card.cordoned, sortable=True,
           filter=Flag("whether an administrator has cordoned the card")),
    Column("mode", str, "", "shared", lambda gpu: str(gpu.card.mode), sortable=True),
    Column("numaNode", int, "", 0, lambda gpu: gpu.card.numa_node),
    Column("nvlinkPeers", list[CardUuid], "", NO_EXAMPLE, lambda gpu: list(gpu.card.nvlink_peers)),
    Column("unified", bool, "the card uses the machine's memory, such as GB10", NO_EXAMPLE,
           lambda gpu: gpu.card.unified),
    Column("podCount", int, "", 1, lambda gpu: len(gpu.snapshot.holders(gpu.view.name, gpu.card.uuid))),
    *figures.used(lambda gpu: gpu.used),
    figures.stale_since(lambda gpu: gpu.view.silent_since),
)  # fmt: skip
WITH_PODS: Final[tuple[Column[ListedCard], ...]] = (
    *COLUMNS,
    Column(
        "pods",
        list[grants.TenantSchema],
        "the containers of pods that the caller may see",
        NO_EXAMPLE,
        lambda gpu: grants.tenants(gpu.view.name, gpu.card.uuid, gpu.snapshot, gpu.sees),
    ),
    Column(
        "spaceGroups",
        list[space_groups.SpaceGroupSchema],
        "the groups in space on the card that have a pod which the caller may see",
        NO_EXAMPLE,
        lambda gpu: space_groups.on_card(gpu.view.name, gpu.card.uuid, gpu.snapshot, gpu.sees),
    ),
    Column(
        "namespaces",
        list[Namespace],
        "of the pods on the card that the caller may see, by name",
        ["default"],
        lambda gpu: gpu.namespaces,
    ),
)


def row(view: NodeView, state: CardState, snapshot: ClusterSnapshot) -> Row:
    """Return a card, without the names of its pods."""
    return columns.row(COLUMNS, ListedCard((view, state), snapshot))


def kind(snapshot: ClusterSnapshot, sees: rows.Sees) -> ListKind[Gpu]:
    """Return how cards are listed."""
    return columns.list_kind(
        WITH_PODS,
        lambda gpu: ListedCard(gpu, snapshot, sees),
        ("node", "index", "uuid"),
        name=lambda gpu: (gpu[0].name, gpu[1].card.uuid),
        same=lambda one, other: one[1] is other[1] and sent_objects.is_same_view(one[0], other[0]),
    )


def of(snapshot: ClusterSnapshot) -> Iterator[Gpu]:
    """Yield every card with its node."""
    return ((view, state) for view in snapshot.views.values() for state in view.state.cards)


@described_by(WITH_PODS)
class GpuSchema(AnswerSchema):
    """A card."""
