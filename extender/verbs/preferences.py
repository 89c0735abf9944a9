"""Tiers of nodes for prioritize: by racks, and by cards with pods that a pod prefers to be beside or apart from.

A node in a lower tier comes before all nodes in higher ones, whatever the packing policy says. No node is refused.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName
from vgpu.placement import choose, racks
from vgpu.placement.policies import DefaultPolicies

MAX_LOOKED: Final = 256  # nodes with such pods on which the pod is placed for one question, 20 ms at most


def tiers(
    cluster: Cluster, pod: WatchedPod, asked: Sequence[NodeName], defaults: DefaultPolicies
) -> Mapping[NodeName, int]:
    """Return the tier of each node, 0 the best; empty where the pod has no preference. Racks come before cards."""
    by_rack, by_cards = rack_tiers(cluster, pod, asked), _by_cards(cluster, pod, asked, defaults)
    if not by_cards:
        return by_rack
    return {name: 2 * by_rack.get(name, 0) + by_cards[name] for name in asked}


def rack_tiers(cluster: Cluster, pod: WatchedPod, asked: Sequence[NodeName]) -> Mapping[NodeName, int]:
    """Return the tier of each node by its rack, for a pod with a policy for racks; else empty."""
    request, nodes = pod.parsed.request, cluster.objects.nodes
    if request is None or request.options.rack_policy is None:
        return {}

    def rack(node: NodeName) -> str:
        return nodes[node].rack if node in nodes else ""

    used = [rack(node) for node in cluster.objects.jobs.nodes(pod, cluster.reservations.binding())]
    return racks.tiers(request.options.rack_policy, {name: rack(name) for name in asked}, used)


def _by_cards(
    cluster: Cluster, pod: WatchedPod, asked: Sequence[NodeName], defaults: DefaultPolicies
) -> dict[NodeName, int]:
    if pod.parsed.request is None or not pod.parsed.request.options.prefers_neighbours:
        return {}
    request = cluster.neighbours.request(pod)
    wanted = cluster.neighbours.preferred(pod, request) if request is not None else None
    if wanted is None:
        return {}
    selector, policy = wanted.options.selector, defaults.gpu_policy_for(wanted.options)
    near = cluster.owners.nodes_with(selector.apart if selector.beside is None else selector.beside)
    looked = [name for name in asked if name in near][:MAX_LOOKED]
    fitting = {name for name in looked if _fits(cluster, wanted, name, policy)}
    worse = set(looked) - fitting if selector.beside is None else set(asked) - fitting
    return {name: int(name in worse) for name in asked}


def _fits(cluster: Cluster, wanted: PodRequest, name: NodeName, policy: PackingPolicy) -> bool:
    state = cluster.states.usable(name)
    return isinstance(state, NodeState) and isinstance(choose.place(wanted, state, policy), Assignment)
