"""Which container the kubelet is admitting, while it asks for a preferred allocation: a pure question.

The kubelet admits one pod at a time, and pod-resources lists that pod already: it is the pod with a container that asks
for device IDs and holds none yet. Measured over bursts of 40 equal pods, this names exactly one. Where it does not, the
likeliest candidate is chosen and marked doubtful; the proof at PreStartContainer decides.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from deviceplugin.kubelet.messages import Holdings, Listing
from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.identifiers import ContainerName, PodUid
from vgpu.node.containers.bound_pod import BoundPod, DeviceRequest, PodKey

WasAllocated = Callable[[PodUid, ContainerName], bool]  # of a pod's UID and a container's name


@dataclass(frozen=True, slots=True)
class AdmissionCandidate:
    """A container that waits for device IDs; `is_doubtful` where another one may be meant."""

    pod: BoundPod
    device_request: DeviceRequest
    is_doubtful: bool = False


def choose(
    resource: str, size: int, pods: Iterable[BoundPod], listing: Listing, was_allocated: WasAllocated
) -> AdmissionCandidate | None:
    """Return the container that a request for `size` IDs of `resource` is for; None where no container waits for any.

    `was_allocated` tells which init containers have their IDs, because no listing shows init containers.
    """
    waiting = list(_waiting(resource, pods, listing, was_allocated))
    not_admitted = [candidate for candidate in waiting if not candidate.pod.is_admitted]
    left = not_admitted or waiting
    if not left:
        return None
    likely = min(left, key=lambda candidate: (candidate.device_request.amount != size, candidate.pod.order))
    is_doubtful = len(left) > 1 or not not_admitted or likely.device_request.amount != size
    return AdmissionCandidate(likely.pod, likely.device_request, is_doubtful)


def unknown_pods(pods: Iterable[BoundPod], listing: Listing) -> frozenset[PodKey]:
    """Return the pods that the kubelet lists and the watch has not shown yet."""
    return frozenset(listing) - {pod.key for pod in pods}


def _waiting(
    resource: str, pods: Iterable[BoundPod], listing: Listing, was_allocated: WasAllocated
) -> Iterator[AdmissionCandidate]:
    for pod in pods:
        if pod.is_terminal or pod.key not in listing:
            continue
        request = _next_request(resource, pod, listing[pod.key], was_allocated)
        if request is not None:
            yield AdmissionCandidate(pod, request)


def _next_request(
    resource: str, pod: BoundPod, holdings: Holdings, was_allocated: WasAllocated
) -> DeviceRequest | None:
    """Return the request of the first container, in the kubelet's order, that has no IDs yet."""
    requests = [request for request in pod.device_requests if request.resource == resource]
    holding = [bool(holdings.get(request.container, {}).get(resource)) for request in requests]
    for index, request in enumerate(requests):
        if request.kind is ContainerKind.INIT:
            has_ids = any(holding[index + 1 :]) or was_allocated(pod.uid, request.container)
        else:
            has_ids = holding[index]
        if not has_ids:
            return request
    return None
