"""Prioritize: exactly one node gets the best score, so that no other plugin's score outvotes the packing policy."""

from collections.abc import Sequence

from extender.cluster import Cluster
from extender.objects import Pod
from vgpu.placement import rank
from vgpu.placement.policies import DefaultPolicies
from vgpu.policy import PodOptions
from vgpu.share import NodeState


def prioritize(pod: Pod, nodes: Sequence[str], cluster: Cluster, defaults: DefaultPolicies) -> dict[str, int]:
    """Return a score from 0 to 10 for every node named; a node that cannot be used now scores 0."""
    usable = [state for name in nodes if isinstance(state := cluster.usable_state(name), NodeState)]
    options = pod.parsed.request.options if pod.parsed.request else PodOptions()
    demand = cluster.demand
    scores = rank.scores(demand.rank(usable, defaults.node_policy_for(options), demand.question(pod)))
    return {name: scores.get(name, 0) for name in nodes}
