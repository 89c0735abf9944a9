"""Filter: which nodes can take a pod, and why the others cannot. A pure question; it reserves nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from extender.cluster import Cluster
from extender.observed import Pod
from vgpu import placement
from vgpu.assignment import Assignment
from vgpu.placement import Defaults, Refusal
from vgpu.reasons import Reason
from vgpu.share import NodeState


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for every node asked about, by name."""

    fitting: list[str] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)


def filter_nodes(pod: Pod, nodes: Sequence[str], cluster: Cluster, defaults: Defaults) -> Verdict:
    """Judge every node; names that are unknown are refused, never an error."""
    verdict = Verdict()
    for name in nodes:
        answer = judge(pod, name, cluster, defaults)
        if isinstance(answer, Refusal):
            verdict.refused[name] = answer
        else:
            verdict.fitting.append(name)
    return verdict


def judge(pod: Pod, node: str, cluster: Cluster, defaults: Defaults) -> Assignment | Refusal:
    """Say where on one node a pod would land, or why it cannot. A pod that wants no GPU lands on nothing."""
    if pod.parsed.problems:
        return Refusal(Reason.INVALID_REQUEST)
    request = pod.parsed.request
    if request is None:
        return Assignment({})
    if not pod.is_admitted(cluster.slice_mib):
        return Refusal(Reason.NOT_ADMITTED)
    standing = cluster.standing(node)
    if isinstance(standing, NodeState):
        return placement.place(request, standing, request.wishes.gpu_policy or defaults.gpu_policy)
    return Refusal(standing)
