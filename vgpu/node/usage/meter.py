"""Measures what containers use of their cards, for the history: GPU time by the hour, and a histogram of its minutes.

The figures are published in the GPUNode's status, once a minute. A period ends with the hour, or with the container; it
stays in the report for a while, so that an extender that did not run then reads it later. Namespaces have turns in the
report: a crowd of short pods leaves out nothing of the pods of others. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from vgpu.domain.cards import measured_use
from vgpu.domain.cards.measured_use import MAX_ENTRIES, MAX_MIB, MeasuredUse
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace, PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.usage.gpu_time import Use
from vgpu.pacing import turns

HOUR_MS: Final = 3_600_000
MINUTE_MS: Final = 60_000
KEPT_MS: Final = 20 * MINUTE_MS  # that an ended period stays in the report
LONGEST_STEP_MS: Final = MINUTE_MS  # between two calls, which are a second apart: then the clock was set
_SHORTEST_MINUTE_MS: Final = 30_000  # a container that ends within less adds no minute to the histogram
_FULL: Final = 100
NO_IDLE_TIMES: Final[Mapping[Use, int]] = {}
NO_NAMESPACES: Final[Mapping[PodUid, Namespace]] = {}
NO_WAITS: Final[Mapping[Use, tuple[float, ...]]] = {}


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes that a container uses of a card now, and the most that it has used."""

    used_bytes: int = 0
    peak_bytes: int = 0


@dataclass(slots=True)
class _MeterPeriod:
    use: Use
    from_ms: int
    until_ms: int
    namespace: Namespace = NO_NAMESPACE
    gpu_ms: float = 0.0
    percent: float | None = None  # of the last full minute; None in the first one
    memory: MemoryUse = MemoryUse()
    idle_ms: int | None = None
    wait_ms: tuple[float, ...] = ()
    levels: list[int] = field(default_factory=lambda: [0] * measured_use.LEVELS)
    minute_from_ms: int = 0
    minute_gpu_ms: float = 0.0

    def add(self, gpu_ms: float, now_ms: int, memory: MemoryUse) -> None:
        """Take what was used since the last call."""
        self.until_ms, self.memory = now_ms, memory
        self.gpu_ms += gpu_ms
        self.minute_gpu_ms += gpu_ms
        if now_ms - self.minute_from_ms >= MINUTE_MS:
            self.end_minute()

    def add_waits(self, grown: tuple[float, ...]) -> None:
        """Take for how long launches waited since the last call, by cause."""
        self.wait_ms = tuple(map(sum, zip_longest(self.wait_ms, grown, fillvalue=0.0)))

    @property
    def minute_percent(self) -> float:
        """Percent of the card's time in the running minute."""
        lasted = self.until_ms - self.minute_from_ms
        return min(_FULL, round(_FULL * self.minute_gpu_ms / lasted, 3)) if lasted > 0 else 0.0

    def end_minute(self) -> None:
        """Add the minute to the histogram, unless it is too short."""
        if self.until_ms - self.minute_from_ms >= _SHORTEST_MINUTE_MS:
            self.percent = self.minute_percent
            self.levels[measured_use.level_of(self.percent)] += 1
        self.minute_from_ms, self.minute_gpu_ms = self.until_ms, 0.0


class UsageMeter:
    """The periods of all containers. Times are Unix milliseconds."""

    def __init__(self) -> None:
        self._open: dict[Use, _MeterPeriod] = {}
        self._ended: list[_MeterPeriod] = []
        self._seconds: dict[Use, float] = {}
        self._waits: dict[Use, tuple[float, ...]] = {}
        self._at_ms = 0

    def add(
        self,
        seconds: Mapping[Use, float],
        memory: Mapping[Use, MemoryUse],
        now_ms: int,
        idle_ms: Mapping[Use, int] = NO_IDLE_TIMES,
        wait_ms: Mapping[Use, tuple[float, ...]] = NO_WAITS,
        namespaces: Mapping[PodUid, Namespace] = NO_NAMESPACES,
    ) -> None:
        """Take the GPU seconds and waits of each container, which only grow, its memory and idle time; every second.

        `namespaces` are those of the pods, as long as they run.

        A wall clock that was set makes the running periods end: two periods of a container never overlap, and none
        contains time that has not passed.
        """
        is_new_hour = now_ms // HOUR_MS != self._at_ms // HOUR_MS
        is_continuous = self._at_ms > 0 and 0 <= now_ms - self._at_ms < LONGEST_STEP_MS
        before = dict(self._open)
        for use in before:
            if is_new_hour or not is_continuous or use not in seconds:
                self._end(use, has_gone=use not in seconds)
        begin = self._at_ms if is_continuous else now_ms
        for use, total in seconds.items():
            period = self._open.get(use) or self._begin(use, begin, before.get(use))
            period.namespace = namespaces.get(use[0], period.namespace)
            used_ms = 1000 * max(0.0, total - self._seconds.get(use, 0.0 if self._at_ms else total))
            period.add(used_ms, now_ms, memory.get(use, MemoryUse()))
            period.idle_ms = idle_ms.get(use)
            period.add_waits(self._grown_waits(use, wait_ms))
        self._seconds = dict(seconds)
        self._waits = {use: waits for use, waits in {**self._waits, **wait_ms}.items() if use in seconds}
        self._at_ms = now_ms
        self._ended = [ended for ended in self._ended if abs(now_ms - ended.until_ms) < KEPT_MS]

    def _grown_waits(self, use: Use, wait_ms: Mapping[Use, tuple[float, ...]]) -> tuple[float, ...]:
        """Return how much the waits of a container have grown; nothing at the first look, or where they are unknown."""
        total = wait_ms.get(use, ())
        before = self._waits.get(use, () if self._at_ms else total)
        return tuple(max(0.0, now - then) for now, then in zip_longest(total, before, fillvalue=0.0)) if total else ()

    def report(self) -> list[MeasuredUse]:
        """Return the periods that run, and those that ended lately; the latest first, `MAX_ENTRIES` at most."""
        periods = sorted((*self._open.values(), *self._ended), key=lambda period: -period.until_ms)
        lasting = (period for period in periods if period.until_ms > period.from_ms)
        return [_entry(period) for period in turns.taken(lasting, lambda period: period.namespace, MAX_ENTRIES)]

    def _begin(self, use: Use, from_ms: int, last: _MeterPeriod | None) -> _MeterPeriod:
        percent = last.percent if last else None
        self._open[use] = _MeterPeriod(use, from_ms, from_ms, percent=percent, minute_from_ms=from_ms)
        return self._open[use]

    def _end(self, use: Use, *, has_gone: bool) -> None:
        period = self._open.pop(use)
        period.end_minute()
        period.idle_ms = None
        if has_gone:  # it uses nothing now; what it has used stays
            period.percent, period.memory = 0.0, MemoryUse(0, period.memory.peak_bytes)
        self._ended.append(period)


def _entry(period: _MeterPeriod) -> MeasuredUse:
    pod_uid, container, gpu = period.use
    levels = list(period.levels)
    while levels and not levels[-1]:
        levels.pop()
    memory = period.memory
    lasted = period.until_ms - period.from_ms
    return MeasuredUse(
        pod_uid=pod_uid,
        container=container,
        gpu=gpu,
        from_ms=period.from_ms,
        until_ms=period.until_ms,
        gpu_ms=min(round(period.gpu_ms), lasted),
        percent=round(period.minute_percent if period.percent is None else period.percent),
        used_mib=_mib(memory.used_bytes),
        peak_mib=_mib(memory.peak_bytes),
        levels=tuple(levels),
        idle_ms=period.idle_ms,
        wait_ms=tuple(map(round, period.wait_ms)),
    )


def _mib(amount: int) -> int:
    return min(-(-amount // MIB), MAX_MIB)
