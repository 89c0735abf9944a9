"""Filter: which nodes can take a pod, and why the others cannot. A pure question; it reserves nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from extender.cluster import Cluster
from extender.objects import Pod
from extender.placement_cache import Answer
from vgpu.assignment import Assignment
from vgpu.placement.choose import Refusal
from vgpu.placement.policies import DefaultPolicies
from vgpu.reasons import Reason
from vgpu.share import NodeState


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for every node asked about, by name."""

    fitting: list[str] = field(default_factory=list)
    refused: dict[str, Refusal] = field(default_factory=dict)


def filter_nodes(pod: Pod, nodes: Sequence[str], cluster: Cluster, defaults: DefaultPolicies) -> Verdict:
    """Judge every node; names that are unknown are refused, never an error."""
    verdict = Verdict()
    judgement = _judgement(pod, cluster, defaults)
    for name in nodes:
        answer = judgement(name)
        if isinstance(answer, Refusal):
            verdict.refused[name] = answer
        else:
            verdict.fitting.append(name)
    return verdict


def judge(pod: Pod, node: str, cluster: Cluster, defaults: DefaultPolicies) -> Answer:
    """Say where on one node a pod would land, or why it cannot. A pod that wants no GPU lands on nothing."""
    return _judgement(pod, cluster, defaults)(node)


def _judgement(pod: Pod, cluster: Cluster, defaults: DefaultPolicies) -> Callable[[str], Answer]:
    """What holds for every node is settled once: a pod that cannot be read is refused by all."""
    if pod.parsed.problems:
        return lambda _: Refusal(Reason.INVALID_REQUEST)
    request = pod.parsed.request
    if request is None:
        return lambda _: Assignment({})
    if not pod.is_admitted(cluster.slice_mib):
        return lambda _: Refusal(Reason.NOT_ADMITTED)
    question = cluster.answers.to(request, defaults.gpu_policy_for(request.wishes))

    devices = request.devices(cluster.slice_mib)

    def on_node(name: str) -> Answer:
        standing = cluster.standing(name)
        if not isinstance(standing, NodeState):
            return Refusal(standing)
        answer = question.ask(standing)
        if isinstance(answer, Assignment) and not cluster.nodes[name].has_room(standing.devices, devices):
            return Refusal(Reason.KUBELET_OFFERS_LESS)
        return answer

    return on_node
