"""What NVML says of cards, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import CardUuid


@dataclass(frozen=True, slots=True)
class Gpu:
    """A card with what only its own node uses.

    Attributes:
        card: what the GPUNode reports.
        minor: the number of the device node, `/dev/nvidia<minor>`.
        mig_enabled: the hardware divides the card (MIG), so that it cannot be shared by vgpushare.
    """

    card: Card
    minor: int
    mig_enabled: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a card's sensors and counters say; None where the card does not tell.

    Attributes:
        memory_total_bytes: all of the card's memory, with what the driver reserves.
        memory_used_bytes: memory in use, without what the driver reserves; as `nvidia-smi` shows it.
        memory_free_bytes: memory that can be allocated.
        temperature_celsius: of the GPU.
        power_watts: drawn now.
        energy_joules: used since the driver was loaded.
        utilization: share of the last sample period (1/6 s to 1 s) in which a kernel ran, 0 to 1.
        memory_utilization: share of that period in which memory was read or written, 0 to 1.
    """

    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    energy_joules: float | None = None
    utilization: float | None = None
    memory_utilization: float | None = None


@dataclass(frozen=True, slots=True)
class BusySamples:
    """NVML's samples of a card's utilization since an earlier one.

    Attributes:
        card: end of each sample in microseconds since 1970, and the share of the time since the sample before in which
            a kernel ran, 0 to 1.
        processes: the same for each process: pid, end of the sample, share.
        active: end of the last sample in which any engine was busy, by pid: kernels, memory, video encoder or decoder.
        names_processes: whether the driver has samples of processes at all.
    """

    card: tuple[tuple[int, float], ...] = ()
    processes: tuple[tuple[int, int, float], ...] = ()
    active: Mapping[int, int] = field(default_factory=dict)
    names_processes: bool = True

    @property
    def pids(self) -> frozenset[int]:
        """The processes that have samples."""
        return frozenset(pid for pid, _, _ in self.processes) | self.active.keys()


@dataclass(frozen=True, slots=True)
class Xid:
    """One error event of a card; `gpu` is None where the driver does not name the card.

    The codes: https://docs.nvidia.com/deploy/xid-errors/
    """

    gpu: CardUuid | None
    code: int
