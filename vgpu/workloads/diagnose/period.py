"""What is known of a program over a period: its region's counters, what NVML says of it, and what it does on the host.

The limiter counts while launches pass its launch gate: with a share of the card's time, or beside other containers that
want the card. Waits are sums over threads, so that they may exceed the time that has passed.
"""

from dataclasses import dataclass
from typing import Final

from vgpu.domain.formats.region import Activity, CardUse, Wait

LEAST_NS: Final = 2_000_000_000  # between two readings


@dataclass(frozen=True, slots=True)
class CardSeen:
    """What NVML says of a program on its card. None is unknown; all but `busy` need the program to be alone.

    Attributes:
        busy: share of the time in which a kernel of the program ran, 0 to 1.
        multiprocessors: mean share of the multiprocessors that worked, 0 to 1.
        copied_per_s: bytes a second over PCIe.
        clock: mean clock as a share of the highest.
        power: share of the time in which power limited the clock.
        heat: share of the time in which the temperature limited the clock.
    """

    busy: float
    multiprocessors: float | None = None
    copied_per_s: float | None = None
    clock: float | None = None
    power: float = 0.0
    heat: float = 0.0


@dataclass(frozen=True, slots=True)
class HostSeen:
    """What the program's processes and their descendants use of the host.

    Attributes:
        cpus: processors in use, on average.
        available: processors that the program may use.
        read_per_s: bytes a second.
        written_per_s: bytes a second.
        storage_per_s: bytes a second that were read from storage, because the page cache did not have them.
        threads: of all these processes.
    """

    cpus: float
    available: int
    read_per_s: float
    written_per_s: float
    storage_per_s: float = 0.0
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """What a container did on one card between two readings.

    Attributes:
        ns: time between the readings.
        gpu_ns: GPU time used in turns.
        activity: the later reading's counters less the earlier one's; `last_launch_at_ns` is the later reading's.
        has_launched: whether a launch passed the gate in between.
        cores: percent of the card's time that the container has, 0 without a share.
        card: what NVML says, where it answers.
        host: what /proc says, where the processes are known.
    """

    ns: int
    gpu_ns: int
    activity: Activity
    has_launched: bool
    cores: int = 0
    card: CardSeen | None = None
    host: HostSeen | None = None

    def part(self, ns: int) -> float:
        """Return a time as a part of the period, 1 at most."""
        return min(1.0, ns / self.ns)

    @property
    def is_known(self) -> bool:
        """Whether anything says if the program uses its card: NVML, its launches, or that each launch would count."""
        return self.card is not None or self.has_launched or self.cores > 0

    @property
    def used(self) -> float:
        """The share of the time in which the program's kernels ran; in turns, by their length, where NVML is silent."""
        return self.card.busy if self.card else self.part(self.gpu_ns)

    @property
    def waits(self) -> float:
        """The share of the time in which launches waited for the own share, or for other containers' turns."""
        return self.part(self.activity.share.ns + self.activity.turn.ns)

    @property
    def idle(self) -> float:
        """The share of the time in which the program could have used the card and did not.

        The gaps that the limiter counts are those in turns: of a program that never waits they are few.
        """
        counted = self.part(self.activity.host_gap_ns)
        if self.card is None:
            return counted
        left = max(0.0, 1 - self.card.busy - self.waits)
        return left if not self.waits else min(left, max(counted, left - self.waits))

    @property
    def awaited(self) -> float:
        """The share of the time in which the host waited for the card."""
        return self.part(self.activity.synchronize_ns)

    @property
    def gap_ns(self) -> float | None:
        """The mean length of the gaps that make up `idle`; None where launches are not counted."""
        gaps = self.activity.host_gaps
        return self.idle * self.ns / gaps if gaps else None


def between(before: CardUse, after: CardUse, ns: int, cores: int) -> Period | None:
    """Return what was done between two readings; None where they are too close, or the region was replaced.

    A region of version 1 counts no activity: then nothing was launched as far as is known.
    """
    old, new = before.activity, after.activity
    launched = new.last_launch_at_ns
    made = Activity(
        share=_less(new.share, old.share),
        turn=_less(new.turn, old.turn),
        last_launch_at_ns=launched,
        host_gaps=new.host_gaps - old.host_gaps,
        host_gap_ns=new.host_gap_ns - old.host_gap_ns,
        synchronizes=new.synchronizes - old.synchronizes,
        synchronize_ns=new.synchronize_ns - old.synchronize_ns,
        pageable_copies=new.pageable_copies - old.pageable_copies,
        pageable_bytes=new.pageable_bytes - old.pageable_bytes,
        long_kernels=new.long_kernels - old.long_kernels,
        long_kernel_ns=new.long_kernel_ns - old.long_kernel_ns,
    )
    gpu_ns = after.gpu_ns - before.gpu_ns
    counts = (gpu_ns, made.host_gap_ns, made.synchronizes, made.share.ns, made.turn.ns)
    if ns < LEAST_NS or min(counts) < 0:
        return None
    return Period(ns, gpu_ns, made, launched != old.last_launch_at_ns, cores)


def _less(new: Wait, old: Wait) -> Wait:
    return Wait(new.ns - old.ns, new.count - old.count)
