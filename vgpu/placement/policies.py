"""The table of packing policies: each row says which card and which node comes first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vgpu.policy import PackingPolicy, PodOptions
from vgpu.share import CardState, NodeState


@dataclass(frozen=True, slots=True)
class Comparator:
    """A policy's sort keys. The smallest key comes first; `choose` and `rank` break ties in one fixed order."""

    card: Callable[[CardState], int]
    node: Callable[[NodeState], int]


@dataclass(frozen=True, slots=True)
class DefaultPolicies:
    """The cluster's packing policies, for pods that name none."""

    node_policy: PackingPolicy = PackingPolicy.BINPACK
    gpu_policy: PackingPolicy = PackingPolicy.BINPACK

    def node_policy_for(self, options: PodOptions) -> PackingPolicy:
        """Return the policy that chooses a pod's node."""
        return self.node_policy if options.node_policy is None else options.node_policy

    def gpu_policy_for(self, options: PodOptions) -> PackingPolicy:
        """Return the policy that chooses a pod's cards."""
        return self.gpu_policy if options.gpu_policy is None else options.gpu_policy


COMPARATORS: Final[Mapping[PackingPolicy, Comparator]] = {
    PackingPolicy.BINPACK: Comparator(card=lambda card: card.free_slices, node=lambda node: node.free_slices),
    PackingPolicy.SPREAD: Comparator(card=lambda card: -card.free_slices, node=lambda node: -node.free_slices),
}
