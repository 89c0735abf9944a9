"""Makes a Decision of what the extender knows: the pod, its assignment, and the cards of its node."""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.history.recording.events import CardShare, ContainerShare, Decision, DecisionSource, PodName, PodOwner
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import UNNAMED_CARD, CardUuid, NodeName
from vgpu.domain.quantity import FULL_CORES

MAX_LABELS: Final = 32
MAX_MODEL: Final = 96  # NVML's own limit for a product name
INSTANCE_LABELS: Final = frozenset(  # they differ between pods of one owner
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "controller-revision-hash",
        "controller-uid",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
_UNKNOWN_CARD: Final = Card(UNNAMED_CARD, -1, "", 0)


def pod_name(pod: WatchedPod) -> PodName:
    """Return a pod's identity."""
    return PodName(pod.uid, pod.namespace, pod.name)


def decision(
    pod: WatchedPod,
    node: GpuNode | None,
    request: PodRequest,
    chosen: Assignment,
    *,
    node_name: NodeName,
    at_ms: int,
    refused: Mapping[str, int],
    source: DecisionSource,
) -> Decision:
    """Return the decision to bind a pod; of cards that `node` does not contain the model and size are unknown."""
    kind, name = pod.lifecycle.owner
    return Decision(
        pod=pod_name(pod),
        node=node_name,
        at_ms=at_ms,
        created_ms=pod.lifecycle.created_ms,
        owner=PodOwner(kind, name) if kind else PodOwner("Pod", pod.name),
        labels=labels(pod.scheduling.labels),
        containers=tuple(_containers(chosen)),
        cards=tuple(_cards(node, request, chosen)),
        refused=refused,
        source=source,
        group=str(request.options.group(pod.namespace) or ""),
    )


def labels(found: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that pods of one owner share, the first 32 of them by key."""
    return dict(sorted((key, value) for key, value in found.items() if key not in INSTANCE_LABELS)[:MAX_LABELS])


def _containers(chosen: Assignment) -> Iterator[ContainerShare]:
    for container, grants in chosen.containers.items():
        for grant in grants:
            yield ContainerShare(container, grant.gpu, grant.memory_mib, grant.cores, grant.whole)


def _cards(node: GpuNode | None, request: PodRequest, chosen: Assignment) -> Iterator[CardShare]:
    known = {card.uuid: card for card in node.node.cards} if node else {}
    slice_mib = node.node.slice_mib if node and node.node.slice_mib else 1
    slices = node.node.card_slices() if node and node.node.slice_mib else {}
    for gpu, taken in usage.of_pod(chosen, request, slice_mib, slices).items():
        yield _card(gpu, known.get(gpu, _UNKNOWN_CARD), taken)


def _card(gpu: CardUuid, card: Card, taken: Usage) -> CardShare:
    model, cores = card.model[:MAX_MODEL], min(taken.cores, FULL_CORES)
    return CardShare(gpu, card.index, model, card.memory_mib, taken.memory_mib, cores, taken.wholes > 0)
