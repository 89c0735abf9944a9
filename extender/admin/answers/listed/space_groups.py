"""Groups in space on a card, in the rows of cards: what their members have and use together (ADR 174)."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures, grants
from extender.admin.answers.listed.columns import AnswerSchema, Column, described_by
from extender.admin.answers.listed.grants import ListedGrant
from extender.admin.answers.paging import Row
from extender.admin.exchange.snapshots import ClusterSnapshot
from vgpu.domain.asks import space
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.identifiers import CardUuid, Namespace, NodeName


@dataclass(frozen=True)
class ListedGroup:
    """A group on a card with its members there, one for each container."""

    group: SpaceGroup
    members: tuple[ListedGrant, ...]

    @cached_property
    def used(self) -> Row:
        """What the members use together."""
        return rows.added(held.used for held in self.members)


COLUMNS: Final[tuple[Column[ListedGroup], ...]] = (
    Column("spaceGroup", str, "as the containers' rows name it", "default/models", lambda item: str(item.group)),
    Column("namespace", Namespace, "whose group it is; empty: it is one of the cluster", "default",
           lambda item: item.group.namespace),
    Column("name", str, "empty: the group that a namespace has without naming one", "models",
           lambda item: item.group.name),
    Column("members", int, "containers on the card, those too that the caller may not see", 3,
           lambda item: len(item.members)),
    Column("cores", int, "percent of the card's time that is guaranteed to the group: the sum of its members'", 30,
           lambda item: space.guarantee(held.grant.cores or 0 for held in item.members)),
    Column("memoryMiB", int, "the sum of its members' limits", 12_288,
           lambda item: sum(held.grant.memory_mib for held in item.members)),
    *figures.used(lambda item: item.used),
)  # fmt: skip

group_row: Final = partial(columns.row, COLUMNS)


def on_card(node: NodeName, uuid: CardUuid, snapshot: ClusterSnapshot, sees: rows.Sees) -> list[Row]:
    """Return the groups on a card of which the caller may see a pod, by name."""
    found = defaultdict[SpaceGroup, list[ListedGrant]](list)
    for pod in snapshot.holders(node, uuid):
        if group := rows.space_group(pod):
            found[group] += (held for held in grants.of_pod(pod, snapshot) if held.grant.gpu == uuid)
    return [
        group_row(ListedGroup(group, tuple(members)))
        for group, members in sorted(found.items())
        if any(sees(held.pod.namespace) for held in members)
    ]


@described_by(COLUMNS, may_lack=False)
class SpaceGroupSchema(AnswerSchema):
    """A group in space on a card."""
