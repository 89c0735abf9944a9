"""Pods that ask for GPUs, as lists have them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from extender.admin.answers import rows
from extender.admin.answers.listed import columns, figures, grants
from extender.admin.answers.listed.columns import NO_EXAMPLE, AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import OneOf
from extender.admin.answers.paging import ListKind, Row
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.placement import documents

STATUS: Final = Annotated[str, Field(pattern="^(Pending|Starting|Running|Terminating|Ended)$")]


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod in a snapshot."""

    pod: WatchedPod
    snapshot: ClusterSnapshot

    @property
    def request(self) -> PodRequest | None:
        """What it asks for; None where that cannot be read."""
        return self.pod.parsed.request


COLUMNS: Final[tuple[Column[ListedPod], ...]] = (
    Column("namespace", Namespace, "", "default", lambda item: item.pod.namespace, sortable=True,
           filter=OneOf("namespaces")),
    Column("name", str, "", "train", lambda item: item.pod.name, sortable=True, filter=OneOf("names of pods")),
    Column("uid", PodUid, "", "0b8a1c9e-0000-4000-8000-000000000001", lambda item: item.pod.uid, sortable=True),
    Column("status", str, "Pending, Starting, Running, Terminating or Ended", "Running",
           lambda item: rows.status(item.pod), sortable=True,
           filter=OneOf("where the pods are in their life", STATUS, 5)),
    Column("statusReason", str, "the kubelet's word for why a pod is Starting, such as ImagePullBackOff; empty: it "
           "runs, or is on no node", "", lambda item: rows.status_reason(item.pod)),
    Column("node", NodeName, "", "node-1", lambda item: item.pod.node, sortable=True, filter=OneOf("names of nodes")),
    Column("requested", str, "for people", "8 GiB, 30 %",
           lambda item: documents.asked(item.request) if item.request else ""),
    Column("memoryMiB", int, "asked for over all cards", 8192, lambda item: rows.asked_mib(item.request),
           sortable=True),
    Column("cores", int, "percent asked for over all cards", 30, lambda item: rows.asked_cores(item.request),
           sortable=True),
    Column("gpuCount", int, "", 1, lambda item: rows.asked_gpus(item.request)),
    Column("computePolicy", str, "empty: the default", "burst",
           lambda item: item.request.options.compute_policy_name if item.request else ""),
    Column("spaceGroup", str, "the pod's group in space: NAMESPACE, NAMESPACE/NAME, or */NAME of one of the cluster; "
           "empty: none", "default/models", lambda item: str(rows.space_group(item.pod) or "")),
    Column("gang", str, "the name of the pod's gang, or of its PodGroup, in its namespace; empty: none", "train-7",
           lambda item: rows.gang(item.pod), sortable=True, filter=OneOf("names of gangs")),
    Column("priority", int, "of the pod's PriorityClass", NO_EXAMPLE, lambda item: item.pod.scheduling.priority,
           sortable=True),
    Column("gpus", list[grants.GrantSchema], "what the pod has", NO_EXAMPLE,
           lambda item: [grants.grant_row(held) for held in grants.of_pod(item.pod, item.snapshot)]),
    Column("problems", list[str], "why the pod's request or its assignment does not count", NO_EXAMPLE,
           lambda item: [str(problem) for problem in item.pod.parsed.problems] or rows.distrust(item.pod)),
    Column("idleSeconds", int | None, "time since any of its containers last used a card; null: unknown", 1860,
           lambda item: rows.pod_idle_s(item.pod, item.snapshot)),
    figures.stale_since(lambda item: rows.silent_since(item.pod, item.snapshot)),
)  # fmt: skip


def row(pod: WatchedPod, snapshot: ClusterSnapshot) -> Row:
    """Return a pod: what it asks for, and which cards it has."""
    return columns.row(COLUMNS, ListedPod(pod, snapshot))


def kind(snapshot: ClusterSnapshot, encoded: Callable[[WatchedPod], bytes] | None = None) -> ListKind[WatchedPod]:
    """Return how pods are listed; `encoded` returns a pod's encoded row where rows are cached."""
    identity = ("namespace", "name", "uid")
    return columns.list_kind(
        COLUMNS, lambda pod: ListedPod(pod, snapshot), identity, name=lambda pod: pod.uid, encoded=encoded
    )


@described_by(COLUMNS)
class PodSchema(AnswerSchema):
    """A pod that asks for GPUs."""
