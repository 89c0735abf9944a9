"""What an admission decides by, besides the pod: the settings and the cards of the cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vgpu import aliases, names
from vgpu.device import Card


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything a decision depends on.

    Attributes:
        cards: the cluster's cards as they are known now.
        slice_mib: MiB of a `vgpu.io/slice`; one figure for the cluster.
        scheduler: the scheduler that GPU pods are sent to.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
    """

    cards: Callable[[], Sequence[Card]]
    slice_mib: int = 256
    scheduler: str = names.SCHEDULER
    gpushare_unit_mib: int = aliases.GIB_IN_MIB
