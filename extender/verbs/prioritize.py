"""Prioritize: exactly one node gets the best score, so that no other plugin's score outvotes the packing policy."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from extender.index.ranking import Scores
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from extender.verbs import preferences
from vgpu.domain.asks.policy import PodOptions
from vgpu.domain.identifiers import NodeName
from vgpu.placement.policies import DefaultPolicies


async def prioritize(
    pod: WatchedPod,
    names: Sequence[NodeName],
    cluster: Cluster,
    defaults: DefaultPolicies,
    pause: Callable[[float], Awaitable[None]],
) -> Scores:
    """Return a score from 0 to 10 for every node named; a node that cannot be used now scores 0."""
    await cluster.index(pause)
    options = pod.parsed.request.options if pod.parsed.request else PodOptions()
    policy, question = defaults.node_policy_for(options), cluster.demand.question(pod)
    cluster.rows.asked("prioritize", partial(cluster.ranking.prepare, policy, question))
    tiers = preferences.tiers(cluster, pod, names, defaults)
    return cluster.ranking.score(names, policy, question, cluster.now(), tiers)
