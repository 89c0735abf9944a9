"""What would help the pods that a simulation places nowhere, beside all of its other pods."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from vgpu.domain.asks.host_request import HostRequest
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.placement.advice import pod_advice
from vgpu.placement.advice.trial import Advice
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulation.simulate import Landing, Wanted
from vgpu.placement.snapshot import NodeView

MAX_ADVISED: Final = 5  # different pods; equal ones have the advice of the first
MAX_NODES: Final = 5_000  # for all of them, as the work for each pod grows with the nodes: 0.1 ms for a node of 8 cards


def advise(
    pods: Sequence[Wanted],
    landings: Sequence[Landing],
    views: Iterable[NodeView],
    defaults: DefaultPolicies,
    pause: Callable[[], None] = lambda: None,
) -> list[tuple[Advice, ...]]:
    """Return the advice to each pod, none to one that is placed; `views` are the nodes after the simulation.

    A pod that waits for its gang, or that room is kept from, lacks nothing that a change of it would give.
    """
    nodes, known = list(views), dict[tuple[PodRequest, HostRequest, NodeRules], tuple[Advice, ...]]()
    most = max(1, min(MAX_ADVISED, MAX_NODES // max(1, len(nodes))))
    found: list[tuple[Advice, ...]] = []
    for pod, landing in zip(pods, landings, strict=True):
        request = None if pod.is_kept_out or pod.reserved else landing.judged
        if request is None:
            found.append(())
            continue
        key = request, pod.host, pod.rules
        if key not in known and len(known) < most:
            known[key] = _of_pod(request, pod, nodes, defaults, pause)
        found.append(known.get(key, ()))
    return found


def _of_pod(
    request: PodRequest, pod: Wanted, nodes: Sequence[NodeView], defaults: DefaultPolicies, pause: Callable[[], None]
) -> tuple[Advice, ...]:
    policy = defaults.gpu_policy_for(request.options)
    refused = [view for view in nodes if pod.rules.refusal(view.name, view.marks) is not None]
    by_rules = pod_advice.of_rules(request, refused, policy, pod.host, pod.rules)
    possible = [view.for_pod(pod.host, pod.rules) for view in nodes]
    return (*by_rules, *pod_advice.advise(request, possible, policy, pause))
