"""What one container asks of a card, as numbers: equal for equal requests, and a key of the judgements."""

from dataclasses import dataclass

from vgpu.domain import names
from vgpu.domain.asks.policy import CardSelector
from vgpu.domain.asks.request import ContainerRequest, PodRequest
from vgpu.placement import packing


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """What one container asks of each of `gpus` cards of a node.

    Attributes:
        gpus: number of cards.
        whole: whether whole cards are asked for; the amounts below are 0 then.
        slices: slices of each card.
        mib: MiB of each card.
        cores: percent of each card's time.
        card_mib: MiB that a card must have in total.
        devices: what the kubelet counts for the whole pod: slices, cards.
        selector: which cards the pod accepts.
    """

    gpus: int
    whole: bool
    slices: int
    mib: int
    cores: int
    card_mib: int
    devices: tuple[int, int]
    selector: CardSelector


def of(request: PodRequest, container: ContainerRequest, slice_mib: int) -> ContainerAsk:
    """Return what a container asks for, with what its init containers need on the same cards."""
    need = None if container.whole else packing.share(request, [container], slice_mib)
    devices = request.devices(slice_mib)
    return ContainerAsk(
        gpus=container.gpus,
        whole=container.whole,
        slices=need.slices if need else 0,
        mib=need.memory_mib if need else 0,
        cores=need.cores if need else 0,
        card_mib=container.memory_mib,
        devices=(devices.get(names.SLICE, 0), devices.get(names.CARD, 0)),
        selector=request.options.selector,
    )


def of_pod(request: PodRequest, slice_mib: int) -> tuple[ContainerAsk, ...]:
    """Return what each container that chooses cards asks for, in the kubelet's order."""
    return tuple(of(request, container, slice_mib) for container in request.choosers)
