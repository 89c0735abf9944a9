"""Which containers hold devices of which cards, as the kubelet says."""

from dataclasses import dataclass

from vgpu.domain.identifiers import CardUuid, ContainerName, PodUid


@dataclass(frozen=True, slots=True, order=True)
class CardHolder:
    """A container holds devices of a card."""

    pod_uid: PodUid
    container: ContainerName
    gpu: CardUuid
