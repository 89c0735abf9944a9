"""What containers have of cards, in the rows of pods and of cards."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.paging import Row
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.state.objects import WatchedPod
from vgpu.domain.grants.assignment import Grant
from vgpu.domain.identifiers import CardUuid, ContainerName, Namespace, NodeName
from vgpu.domain.quantity import FULL_CORES


@dataclass(frozen=True, slots=True)
class ListedGrant:
    """What a container of a pod has of a card; `used` is what it uses."""

    pod: WatchedPod
    container: ContainerName
    grant: Grant
    used: Row
    snapshot: ClusterSnapshot

    @property
    def index(self) -> int:
        """NVML's index of the card; -1 where it is not known."""
        gpunode = self.snapshot.gpunodes.get(self.pod.node)
        card = gpunode.node.card(self.grant.gpu) if gpunode else None
        return card.index if card else -1


COLUMNS: Final[tuple[Column[ListedGrant], ...]] = (
    Column("container", ContainerName, "", "main", lambda held: held.container),
    Column("uuid", CardUuid, "", figures.UUID, lambda held: held.grant.gpu),
    Column("index", int, "NVML's index on the node; -1: unknown", 0, lambda held: held.index),
    Column("memoryMiB", int, "", 8192, lambda held: held.grant.memory_mib),
    Column("cores", int, "percent of the card's time that is guaranteed", 30,
           lambda held: FULL_CORES if held.grant.whole else held.grant.cores or 0),
    Column("whole", bool, "no other container may use the card", NO_EXAMPLE, lambda held: held.grant.whole),
    Column("spaceGroup", str, "the container's group in space: NAMESPACE, NAMESPACE/NAME, or */NAME of one of the "
           "cluster; empty: none", NO_EXAMPLE, lambda held: str(rows.space_group(held.pod) or "")),
    *figures.used(lambda held: held.used),
    Column("idleSeconds", int | None, "time since the container last used the card, as reported; null: unknown", 0,
           lambda held: rows.idle_s(held.pod, held.container, held.grant.gpu, held.snapshot)),
)  # fmt: skip
OF_TENANT: Final[tuple[Column[ListedGrant], ...]] = (
    Column("namespace", Namespace, "", "default", lambda held: held.pod.namespace),
    Column("pod", str, "", "train", lambda held: held.pod.name),
    *COLUMNS,
)

grant_row: Final = partial(columns.row, COLUMNS)
tenant_row: Final = partial(columns.row, OF_TENANT)


def of_pod(pod: WatchedPod, snapshot: ClusterSnapshot) -> Iterator[ListedGrant]:
    """Yield what the containers of a bound pod have."""
    if not pod.node:
        return
    for container, granted in rows.held(pod):
        for grant in granted:
            used = rows.used_of(pod, container, grant.gpu, snapshot)
            yield ListedGrant(pod, container, grant, used, snapshot)


def tenants(node: NodeName, uuid: CardUuid, snapshot: ClusterSnapshot, sees: rows.Sees) -> list[Row]:
    """Return the containers on a card whose pods the caller may see."""
    return [
        tenant_row(held)
        for pod in snapshot.holders(node, uuid)
        if sees(pod.namespace)
        for held in of_pod(pod, snapshot)
        if held.grant.gpu == uuid
    ]


@described_by(COLUMNS, may_lack=False)
class GrantSchema(AnswerSchema):
    """What a container has of one card."""


@described_by(OF_TENANT, may_lack=False)
class TenantSchema(AnswerSchema):
    """A container on a card."""
