"""Which container the kubelet is admitting, while it asks for a preferred allocation: a pure question.

The kubelet admits one pod at a time, and pod-resources lists it already: the pod whose container asks for IDs and holds
none yet. Measured over bursts of 40 equal pods this names exactly one. Where it does not, the choice is the likeliest
one and marked doubtful; the proof at PreStartContainer decides.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from vgpu.node.pods import BoundPod, DeviceRequest, PodKey
from vgpu.request import ContainerKind

# What pod-resources lists: pod -> container -> resource -> IDs. Init containers are never in it.
Listing = Mapping[PodKey, Mapping[str, Mapping[str, frozenset[str]]]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who is being admitted; `is_doubtful` where it was not the only one it could be."""

    pod: BoundPod
    device_request: DeviceRequest
    is_doubtful: bool = False


def choose(
    resource: str,
    size: int,
    pods: Iterable[BoundPod],
    listing: Listing,
    was_allocated: Callable[[str, str], bool],
) -> Candidate | None:
    """Choose whom a request for `size` IDs of `resource` is for; None where nobody waits for any.

    `was_given(uid, container)` tells the init containers that have been served, which no listing shows.
    """
    waiting = list(_waiting(resource, pods, listing, was_allocated))
    fresh = [choice for choice in waiting if not choice.pod.is_admitted]
    left = fresh or waiting
    if not left:
        return None
    likely = min(left, key=lambda choice: (choice.device_request.amount != size, choice.pod.order))
    return Candidate(
        likely.pod,
        likely.device_request,
        is_doubtful=len(left) > 1 or not fresh or likely.device_request.amount != size,
    )


def unknown_pods(pods: Iterable[BoundPod], listing: Listing) -> frozenset[PodKey]:
    """Pods that the kubelet lists and our watch does not know yet."""
    return frozenset(listing) - {pod.key for pod in pods}


def _waiting(
    resource: str, pods: Iterable[BoundPod], listing: Listing, was_allocated: Callable[[str, str], bool]
) -> Iterator[Candidate]:
    for pod in pods:
        if pod.is_over or pod.key not in listing:
            continue
        want = _next_want(resource, pod, listing[pod.key], was_allocated)
        if want is not None:
            yield Candidate(pod, want)


def _next_want(
    resource: str,
    pod: BoundPod,
    holdings: Mapping[str, Mapping[str, frozenset[str]]],
    was_allocated: Callable[[str, str], bool],
) -> DeviceRequest | None:
    """The first container, in the kubelet's order, that has not been served."""
    device_requests = [want for want in pod.device_requests if want.resource == resource]
    holding = [bool(holdings.get(want.container, {}).get(resource)) for want in device_requests]
    for place, want in enumerate(device_requests):
        if want.kind is ContainerKind.INIT:
            served = any(holding[place + 1 :]) or was_allocated(pod.uid, want.container)
        else:
            served = holding[place]
        if not served:
            return want
    return None
