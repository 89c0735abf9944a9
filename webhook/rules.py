"""What decisions depend on besides the pod: the settings and the cluster's cards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vgpu.domain import names
from vgpu.domain.asks import aliases
from vgpu.domain.cards.device import Card


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """What decisions depend on.

    Attributes:
        cards: returns the cluster's cards now.
        slice_mib: MiB of a `vgpu.io/slice`, the same in the whole cluster.
        scheduler: the scheduler of pods that ask for GPUs.
        gpushare_unit_mib: MiB of one `aliyun.com/gpu-mem`.
    """

    cards: Callable[[], Sequence[Card]]
    slice_mib: int = 256
    scheduler: str = names.SCHEDULER
    gpushare_unit_mib: int = aliases.GIB_IN_MIB
