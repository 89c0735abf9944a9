"""Tiers of nodes for prioritize: by racks, by cards with pods that a pod prefers, and by cards of other jobs.

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
from vgpu.placement import choose, job_sets, racks
from vgpu.placement.policies import DefaultPolicies

MAX_LOOKED: Final = 256  # nodes with such pods on which the pod is placed for one question, 20 ms at most
MAX_OVERLAPPING: Final = 32  # nodes with overlapping jobs that are found for one question, 8 ms at most


def tiers(
    cluster: Cluster, pod: WatchedPod, asked: Sequence[NodeName], defaults: DefaultPolicies
) -> Mapping[NodeName, int]:
    """Return the tier of each node, 0 the best; empty where the pod has no preference.

    Racks come before cards beside other pods, and these before cards that are in part those of other jobs.
    """
    by_rack, by_cards = rack_tiers(cluster, pod, asked), _by_cards(cluster, pod, asked, defaults)
    found = {name: 2 * by_rack.get(name, 0) + by_cards[name] for name in asked} if by_cards else by_rack
    overlapping = _overlapping(cluster, pod, asked, defaults, found)
    return {name: 2 * found.get(name, 0) + (name in overlapping) for name in asked} if overlapping else found


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


def _overlapping(
    cluster: Cluster,
    pod: WatchedPod,
    asked: Sequence[NodeName],
    defaults: DefaultPolicies,
    tiers: Mapping[NodeName, int],
) -> set[NodeName]:
    """Return the nodes on which shares of several cards would overlap with other jobs, down to the first without.

    Nodes are looked at in the order in which they would be scored, because only the best one counts (ADR 192).
    """
    request, near = pod.parsed.request, cluster.states.with_jobs()
    if request is None or not near or not any(one.gpus > 1 and not one.whole for one in request.choosers):
        return set()
    best = min(map(tiers.__getitem__, asked), default=0) if tiers else 0
    names = cluster.ranking.usable([name for name in asked if tiers.get(name, 0) == best], cluster.now())
    node_policy, question = defaults.node_policy_for(request.options), cluster.demand.question(pod)
    policy, found = defaults.gpu_policy_for(request.options), set[NodeName]()
    for name in cluster.ranking.ordered(names, node_policy, question)[:MAX_OVERLAPPING]:
        if name not in near or not _overlaps(cluster, request, name, policy):
            break
        found.add(name)
    return found


def _overlaps(cluster: Cluster, request: PodRequest, name: NodeName, policy: PackingPolicy) -> bool:
    state = cluster.states.usable(name)
    if not isinstance(state, NodeState) or not state.jobs:
        return False
    placed = choose.place(request, state, policy)
    return isinstance(placed, Assignment) and job_sets.overlapped(placed, state.jobs) > 0


def _fits(cluster: Cluster, wanted: PodRequest, name: NodeName, policy: PackingPolicy) -> bool:
    state = cluster.states.usable(name)
    return isinstance(state, NodeState) and isinstance(choose.place(wanted, state, policy), Assignment)
