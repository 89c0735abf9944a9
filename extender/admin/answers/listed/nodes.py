"""Nodes with GPUs, as lists have them."""

from collections.abc import Collection
from functools import cached_property
from typing import Final

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import AtLeast, Flag, OneOf
from extender.admin.answers.paging import ListKind, Row
from extender.admin.exchange import sent_objects
from extender.admin.exchange.snapshots import ClusterSnapshot
from vgpu.domain.cards.share import CardState
from vgpu.placement.snapshot import NodeView


class ListedNode:
    """A node in a snapshot; what several columns read is computed once."""

    def __init__(self, view: NodeView, snapshot: ClusterSnapshot) -> None:
        self.view = view
        self.snapshot = snapshot

    @cached_property
    def cards(self) -> list[CardState]:
        """The node's own cards."""
        return rows.own_cards(self.view)

    @cached_property
    def used(self) -> Row:
        """What is used of its cards."""
        return rows.added([rows.used_on(self.view.name, card.card.uuid, self.snapshot) for card in self.cards])

    @property
    def plugin_version(self) -> str:
        """The version of its device plugin; empty where there is no GPUNode."""
        gpunode = self.snapshot.gpunodes.get(self.view.name)
        return gpunode.node.plugin_version if gpunode else ""

    @property
    def pods(self) -> int:
        """How many pods hold its cards."""
        holders, name = self.snapshot.holders, self.view.name
        return len({pod.uid for card in self.cards for pod in holders(name, card.card.uuid)})


COLUMNS: Final[tuple[Column[ListedNode], ...]] = (
    Column("name", str, "", "node-1", lambda node: node.view.name, sortable=True, filter=OneOf("names of nodes")),
    Column("rack", str, "by the label vgpu.io/rack; empty: no label says it", "r1",
           lambda node: node.view.rack, sortable=True, filter=OneOf("racks of nodes", str)),
    Column("usable", bool, "whether pods can be placed on the node now: its device plugin serves, and it is Ready "
           "and not cordoned", NO_EXAMPLE,
           lambda node: node.view.unusable is None, sortable=True,
           filter=Flag("whether pods can be placed on the node")),
    Column("reason", str, "why not", "PluginAway", lambda node: str(node.view.unusable or ""), sortable=True),
    Column("gpus", int, "", 8, lambda node: len(node.cards), sortable=True),
    Column("healthyGpus", int, "", 8, lambda node: sum(card.card.healthy for card in node.cards)),
    Column("cordonedGpus", int, "", 0, lambda node: sum(card.card.cordoned for card in node.cards)),
    Column("models", list[str], "", ["NVIDIA H100 80GB HBM3"],
           lambda node: sorted({card.card.model for card in node.cards})),
    Column("memoryMiB", int, "", 652_304, lambda node: sum(card.card.memory_mib for card in node.cards), sortable=True),
    Column("allocatedMiB", int, "held by containers", 65_536,
           lambda node: sum(map(rows.allocated_mib, node.cards)), sortable=True),
    Column("freeMiB", int, "on cards that can be used", 586_768,
           lambda node: sum(rows.usable_mib(node.view, card) for card in node.cards), sortable=True,
           filter=AtLeast("minFreeMiB", "the least free MiB over its cards")),
    Column("allocatedCores", int, "percent of one card's time, added up over all cards", 80,
           lambda node: sum(map(rows.allocated_cores, node.cards)), sortable=True),
    Column("freeCores", int, "the same, on cards that can be used", 720,
           lambda node: sum(rows.usable_cores(node.view, card) for card in node.cards), sortable=True),
    Column("pods", int, "", 5, lambda node: node.pods),
    Column("sliceMiB", int, "", 256, lambda node: node.view.state.slice_mib),
    Column("pluginVersion", str, "", "0.1.0", lambda node: node.plugin_version),
    *figures.used(lambda node: node.used),
    figures.stale_since(lambda node: node.view.silent_since),
)  # fmt: skip


def row(view: NodeView, snapshot: ClusterSnapshot, chosen: Collection[str] = ()) -> Row:
    """Return a node: whether pods can be placed on it, and what is free on its cards; `chosen` fields only."""
    return columns.row(COLUMNS, ListedNode(view, snapshot), chosen)


def kind(snapshot: ClusterSnapshot) -> ListKind[NodeView]:
    """Return how nodes are listed."""
    return columns.list_kind(
        COLUMNS,
        lambda view: ListedNode(view, snapshot),
        ("name",),
        name=lambda view: view.name,
        same=sent_objects.is_same_view,
    )


@described_by(COLUMNS)
class NodeSchema(AnswerSchema):
    """A node with GPUs. Every field is optional, because a request may choose fields."""
