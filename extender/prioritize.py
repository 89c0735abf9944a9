"""Prioritize: exactly one node gets the best score, so that nothing outvotes the packing policy."""

from collections.abc import Sequence

from extender.cluster import Cluster
from extender.objects import Pod
from vgpu.placement import rank
from vgpu.placement.policies import DefaultPolicies
from vgpu.policy import Wishes
from vgpu.share import NodeState


def prioritize(pod: Pod, nodes: Sequence[str], cluster: Cluster, defaults: DefaultPolicies) -> dict[str, int]:
    """Score every node asked about, 0 to 10; a node that cannot be used now scores 0."""
    standings = {name: cluster.standing(name) for name in nodes}
    states = [state for state in standings.values() if isinstance(state, NodeState)]
    wishes = pod.parsed.request.wishes if pod.parsed.request else Wishes()
    scored = rank.scores(rank.rank(states, defaults.node_policy_for(wishes)))
    return {name: scored.get(name, 0) for name in nodes}
