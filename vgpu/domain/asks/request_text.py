"""A request in words, for people: what a pod needs."""

from vgpu.domain import quantity
from vgpu.domain.asks.request import ContainerRequest, PodRequest


def needs(request: PodRequest) -> str:
    """Say what a pod asks for: `needs 8 GiB and 30 % on 1 card`."""
    return "needs " + " and ".join(dict.fromkeys(_container(c) for c in request.containers))


def _container(asked: ContainerRequest) -> str:
    cards = f"{asked.gpus} card{'s' if asked.gpus > 1 else ''}"
    if asked.whole:
        return f"{cards} whole"
    cores = "" if asked.cores is None else f" and {asked.cores} %"
    return f"{quantity.human_mib(asked.memory_mib)}{cores} on {cards}"
