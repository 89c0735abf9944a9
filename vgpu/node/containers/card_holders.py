"""Which containers hold devices of which cards, as the kubelet says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class CardHolder:
    """A container holds devices of a card."""

    pod_uid: str
    container: str
    gpu: str
