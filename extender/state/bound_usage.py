"""What the bound pods of each node take, kept up to date pod by pod.

A node's figures are added up once, when they are first asked for, and again when its slice size or its cards change.
From then on each pod costs its own arithmetic, whatever the number of pods on the node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extender.state import gang_members
from extender.state.job_cards import JobCards
from extender.state.objects import WatchedPod
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.share import NO_USAGE, Usage
from vgpu.domain.grants import usage
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import CardUuid, NodeName


@dataclass(slots=True)
class NodeUsage:
    """What the bound pods of one node take.

    Attributes:
        node: the node, for the size of its slices and its cards.
        card_slices: how many slices each card is cut into, by UUID.
        cards: what is taken of each card, by UUID: of pods whose assignments are trusted.
        devices: what the kubelet counts, by resource: of all pods.
        jobs: the cards of each job that has shares of several cards.
    """

    node: Node
    card_slices: Mapping[CardUuid, int]
    cards: dict[CardUuid, Usage] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    jobs: JobCards = field(default_factory=JobCards)

    def add(self, pod: WatchedPod) -> None:
        """Add a pod."""
        for card, more in self._of(pod).items():
            self.cards[card] = self.cards.get(card, NO_USAGE) + more
        add_amounts(self.devices, self._devices(pod))
        if (held := granted(pod)) is not None:
            self.jobs.add(pod.uid, gang_members.key_of(pod), held[1])

    def remove(self, pod: WatchedPod) -> None:
        """Remove a pod, in the version that was added."""
        for card, less in self._of(pod).items():
            self.cards[card] -= less
        for resource, amount in self._devices(pod).items():
            self.devices[resource] -= amount
        self.jobs.remove(pod.uid)

    def _of(self, pod: WatchedPod) -> Mapping[CardUuid, Usage]:
        held = granted(pod)
        return usage.of_pod(held[1], held[0], self.node.slice_mib, self.card_slices) if held else {}

    def _devices(self, pod: WatchedPod) -> Mapping[str, int]:
        return pod.parsed.request.devices(self.node.slice_mib) if pod.parsed.request else {}


class BoundUsage:
    """The figures of all nodes that were asked for."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, NodeUsage] = {}

    def on(self, node: Node, pods: Iterable[WatchedPod]) -> NodeUsage:
        """Return a node's figures; `pods` are the running pods that are bound to it. Do not change what is returned."""
        known = self._nodes.get(node.name)
        if known is not None and known.node is node:
            return known
        card_slices = node.card_slices()
        if known is not None and (known.node.slice_mib, known.card_slices) == (node.slice_mib, card_slices):
            known.node = node
            return known
        known = self._nodes[node.name] = NodeUsage(node, card_slices)
        for pod in pods:
            known.add(pod)
        return known

    def change(self, before: WatchedPod | None, after: WatchedPod | None) -> None:
        """Take two versions of a pod; None where the pod is new, or gone."""
        if before is not None and (known := self._holding(before)) is not None:
            known.remove(before)
        if after is not None and (known := self._holding(after)) is not None:
            known.add(after)

    def forget(self, node: NodeName) -> None:
        """Forget a node."""
        self._nodes.pop(node, None)

    def _holding(self, pod: WatchedPod) -> NodeUsage | None:
        return None if pod.is_terminal else self._nodes.get(pod.node)


def add_amounts(amounts: dict[str, int], more: Mapping[str, int]) -> None:
    """Add amounts by resource to others."""
    for resource, amount in more.items():
        amounts[resource] = amounts.get(resource, 0) + amount


def holds_alike(before: WatchedPod | None, after: WatchedPod) -> bool:
    """Whether two versions of a pod take the same of the same node."""
    if before is None or (before.node, before.is_terminal) != (after.node, after.is_terminal):
        return before is None and not after.node
    if not after.node:
        return True
    return (before.parsed.request, before.assignment) == (after.parsed.request, after.assignment)


def granted(pod: WatchedPod) -> tuple[PodRequest, Assignment] | None:
    """Return a bound pod's request and assignment; None where the assignment is not trusted, so that it counts nothing.

    What such a pod really holds on its node is in the slices that the device plugin reports as held.
    """
    request, chosen = pod.parsed.request, pod.assignment
    return (request, chosen) if pod.node and request is not None and isinstance(chosen, Assignment) else None
