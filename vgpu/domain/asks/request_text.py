"""A request in words, for people: what a pod needs."""

from vgpu.domain import quantity
from vgpu.domain.asks.request import ContainerRequest, PodRequest


def needs(request: PodRequest) -> str:
    """Say what a pod asks for: `needs 8 GiB and 30 % on 1 card`."""
    return "needs " + " and ".join(dict.fromkeys(_container(c) for c in request.containers))


def memory(asked: ContainerRequest) -> str:
    """Say how much memory a container asks for on each card: `8 GiB`, or `50 % of a card` before it is resolved."""
    if asked.memory_percentage is not None:
        return f"{asked.memory_percentage} % of a card"
    return quantity.human_mib(asked.memory_mib)


def _container(asked: ContainerRequest) -> str:
    cards = f"{asked.gpus} card{'s' if asked.gpus > 1 else ''}"
    if asked.whole:
        return f"{cards} whole"
    cores = "" if asked.cores is None else f" and {asked.cores} %"
    return f"{memory(asked)}{cores} on {cards}"
