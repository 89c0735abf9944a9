"""Why a running program uses its card badly. Pure: what is known of it is an argument.

The thresholds were set with the programs of `benchmarks/diagnose/programs.py` on an H200. Each finding says how many
times as fast the program could be at most, without what it names.
"""

from collections.abc import Iterator
from typing import Final

from vgpu.workloads.diagnose.catalogue import FindingCode
from vgpu.workloads.diagnose.finding import ProgramFinding
from vgpu.workloads.diagnose.period import CardSeen, HostSeen, Period

_USED: Final = 0.005  # share of the time from which on NVML's figure, a whole percent, is use
_WAITS: Final = 0.10  # of the time, from which on a wait is worth a finding
_GAPS: Final = 0.20
_LONG_GAP_NS: Final = 5_000_000  # longer than the host takes for any launch: it does something else
_SYNCS_PER_S: Final = 20
_COPIED_PER_IDLE_S: Final = 2e9  # bytes: slower than any pageable copy, and above what launches cause
_FILES_PER_IDLE_S: Final = 1e8  # bytes: more than logs and checks of files
_COMPUTING: Final = 0.5  # processors: the host works, rather than sleeps
_WORKERS: Final = 1.5  # processors: more than the thread that launches
_BUSY: Final = 0.80
_FEW: Final = 0.25  # of the multiprocessors
_SLOWED: Final = 0.90  # of the highest clock
_OFTEN: Final = 0.50  # of the samples
_LEAST_BOUND: Final = 0.01
_NS: Final = 1e9


def check(seen: Period) -> Iterator[ProgramFinding]:
    """Yield what keeps a program from its card, in the order of what costs the most."""
    if not seen.is_known:
        return
    if not seen.has_launched and seen.used < _USED:
        yield ProgramFinding(FindingCode.IDLE, (), f"no kernel ran in {seen.ns / _NS:.0f} s")
        return
    found = [*_waits(seen), *_gaps(seen), *_hardware(seen), *_long_kernels(seen)]
    yield from (finding for _, finding in sorted(found, key=lambda costly: -costly[0]))


def _waits(seen: Period) -> Iterator[tuple[float, ProgramFinding]]:
    share, turn = seen.part(seen.activity.share.ns), seen.part(seen.activity.turn.ns)
    used = f"it used {seen.part(seen.gpu_ns):.0%} of the card's time"
    if share >= _WAITS:
        text = f"launches waited {share:.0%} of the time for the own share of {seen.cores} %; {used}"
        yield share, ProgramFinding(FindingCode.SHARE_USED_UP, (), text, _bound(1 - share))
    if turn >= _WAITS:
        text = f"launches waited {turn:.0%} of the time for other containers of the card; {used}"
        yield turn, ProgramFinding(FindingCode.WAITS_FOR_TURNS, (), text, _bound(1 - turn))


def _long_kernels(seen: Period) -> Iterator[tuple[float, ProgramFinding]]:
    """Yield what keeps others waiting, as the last finding: without it this program is no faster."""
    count = seen.activity.long_kernels
    if count:
        each = seen.activity.long_kernel_ns / count / _NS
        text = f"it ran {count:,} kernels or graphs of 50 ms or more, {each:.2g} s each: other containers wait for each"
        yield 0.0, ProgramFinding(FindingCode.LONG_KERNELS, (), text)


def _gaps(seen: Period) -> Iterator[tuple[float, ProgramFinding]]:
    """Yield why the card was idle although it was the container's turn."""
    if seen.idle < _GAPS:
        return
    code, more = _cause(seen)
    text = f"the card was idle {seen.idle:.0%} of the time{more}"
    saved = min(seen.idle, seen.awaited) if code is FindingCode.SYNC_BOUND else seen.idle
    yield (
        seen.idle,
        ProgramFinding(code, (), text, _bound(1 - saved, seen.host if code is FindingCode.DATA_BOUND else None)),
    )


def _cause(seen: Period) -> tuple[FindingCode, str]:
    """Return why the card was idle, and what shows that: what is certain is asked first."""
    copied, where = _copied_per_s(seen)
    if copied / seen.idle >= _COPIED_PER_IDLE_S:
        return FindingCode.COPY_BOUND, f", while {copied / 1e9:.1f} GB/s were copied {where}"
    host = seen.host
    if host and host.written_per_s / seen.idle >= _FILES_PER_IDLE_S and host.written_per_s > host.read_per_s:
        return FindingCode.CHECKPOINT_DIPS, f", while {host.written_per_s / 1e6:,.0f} MB/s were written"
    if host and host.read_per_s / seen.idle >= _FILES_PER_IDLE_S:
        stored = f"{min(1.0, host.storage_per_s / host.read_per_s):.0%} of it from storage"
        return FindingCode.DATA_BOUND, f", while {host.read_per_s / 1e6:,.0f} MB/s were read, {stored}, {_work(host)}"
    if host and host.cpus >= _WORKERS:
        return FindingCode.DATA_BOUND, f", while data were prepared {_work(host)}"
    return _by_gaps(seen, host)


def _copied_per_s(seen: Period) -> tuple[float, str]:
    """Return the bytes that were copied a second, and where: only those of pageable memory where NVML cannot tell."""
    if seen.card and seen.card.copied_per_s is not None:
        return seen.card.copied_per_s, "over PCIe"
    return seen.activity.pageable_bytes * _NS / seen.ns, "between the card and pageable memory"


def _by_gaps(seen: Period, host: HostSeen | None) -> tuple[FindingCode, str]:
    """Tell apart by the length of the gaps and by waits, which the limiter counts.

    Without its waits a program takes as long as the host needs to launch its work, or the card to do it. So waits are
    the cause only where they take much of the time; where they are short, the host was late with its launches.
    """
    if seen.gap_ns is None:
        return (
            FindingCode.HOST_BOUND,
            f": it launches, waits for results, or does something else {_work(host)}".rstrip(),
        )
    seconds = seen.ns / _NS
    often = f", in {seen.activity.host_gaps / seconds:,.0f} gaps a second"
    if seen.gap_ns >= _LONG_GAP_NS:
        does_compute = host is not None and host.cpus >= _COMPUTING
        return (
            FindingCode.DATA_BOUND if does_compute else FindingCode.HOST_BOUND,
            f"{often} of {seen.gap_ns / 1e6:,.0f} ms",
        )
    if _waits_take_the_time(seen):
        waits = f"{seen.activity.synchronizes / seconds:,.0f} times a second, {seen.awaited:.0%} of the time"
        return FindingCode.SYNC_BOUND, f"{often}; the program waited for it {waits}"
    return FindingCode.LAUNCH_BOUND, f"{often} of {seen.gap_ns / 1e3:,.0f} us"


def _work(host: HostSeen | None) -> str:
    """Return with how much of the host a program works."""
    threads = f" in {host.threads} threads" if host and host.threads else ""
    return f"by {host.cpus:.1f} CPUs{threads}" if host else ""


def _waits_take_the_time(seen: Period) -> bool:
    """Return whether waits are frequent, come with every second gap or more, and fill half of the idle time or more."""
    waits = seen.activity.synchronizes
    is_frequent = waits / (seen.ns / _NS) >= _SYNCS_PER_S
    return is_frequent and waits * 2 >= seen.activity.host_gaps and seen.awaited * 2 >= seen.idle


def _hardware(seen: Period) -> Iterator[tuple[float, ProgramFinding]]:
    """Yield why a busy card is slow."""
    card = seen.card
    if card is None or card.busy < _BUSY:
        return
    if card.multiprocessors is not None and (part := card.multiprocessors / card.busy) <= _FEW:
        text = f"kernels ran {card.busy:.0%} of the time, on {card.multiprocessors:.0%} of the multiprocessors"
        yield 1 - part, ProgramFinding(FindingCode.ONE_KERNEL, (), text, _bound(part))
    yield from _limited(card)


def _limited(card: CardSeen) -> Iterator[tuple[float, ProgramFinding]]:
    if card.clock is None or card.clock >= _SLOWED:
        return
    text = f"the clock was {card.clock:.0%} of the highest"
    if card.heat >= _OFTEN:
        yield (
            1 - card.clock,
            ProgramFinding(FindingCode.HEAT_LIMIT, (), f"{text}, limited by the temperature", _bound(card.clock)),
        )
    elif card.power >= _OFTEN:
        yield (
            1 - card.clock,
            ProgramFinding(FindingCode.POWER_LIMIT, (), f"{text}, limited by power", _bound(card.clock)),
        )


def _bound(part: float, host: HostSeen | None = None) -> float:
    """Return how many times as fast a program is at most that now works this part of the time.

    Where the host computes all the time (`host`), its free processors are a bound too.
    """
    by_card = 1 / max(part, _LEAST_BOUND)
    return min(by_card, host.available / max(host.cpus, 1.0)) if host and host.cpus >= _COMPUTING else by_card
