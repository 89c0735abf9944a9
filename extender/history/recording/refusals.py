"""Sums up the calls of filter that found no node for a pod: an event for five minutes of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.history.recording.decisions import pod_name
from extender.history.recording.events import PodName, Refusals
from extender.state.objects import WatchedPod
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, PodUid
from vgpu.pacing.fair_cache import FairCache

MAX_PODS: Final = 10_000
PERIOD_MS: Final = 300_000
COUNT_MS: Final = 15_000  # reasons are taken again after this long

Refused = Mapping[Reason, int]  # how many nodes were refused for each reason


def count(refused: Refused) -> dict[str, int]:
    """Return the reasons as the history has them."""
    return {str(reason): nodes for reason, nodes in refused.items()}


@dataclass(slots=True)
class _RefusalPeriod:
    pod: PodName
    since_ms: int
    until_ms: int
    counted_ms: int
    attempts: int = 1
    reasons: dict[str, int] = field(default_factory=dict)

    def event(self) -> Refusals:
        return Refusals(self.pod, min(self.since_ms, self.until_ms), self.until_ms, self.attempts, self.reasons)


class RefusalPeriods:
    """A period for each pod that waits, of the 10,000 pods that began one last.

    Where there are more, the namespace of most loses its oldest one: its crowd cuts no other's period short.
    """

    def __init__(self) -> None:
        self._periods = FairCache[Namespace, PodUid, _RefusalPeriod](MAX_PODS)

    def add(self, pod: WatchedPod, refused: Refused, now_ms: int) -> Iterator[Refusals]:
        """Count an attempt; yield the period that ends early where there are too many."""
        period = self._periods.get(pod.uid)
        if period is None:
            begun = _RefusalPeriod(pod_name(pod), now_ms, now_ms, now_ms, reasons=count(refused))
            displaced = self._periods.put(pod.namespace, pod.uid, begun)
            if displaced is not None:
                yield displaced.event()
            return
        period.attempts += 1
        period.until_ms = now_ms
        if _has_passed(period.counted_ms, now_ms, COUNT_MS):
            period.counted_ms, period.reasons = now_ms, count(refused)

    def end(self, uid: PodUid) -> Iterator[Refusals]:
        """Yield the period of a pod that is bound or gone, or whose period is over."""
        period = self._periods.pop(uid)
        if period is not None:
            yield period.event()

    def due(self, now_ms: int) -> Iterator[Refusals]:
        """Yield the periods that last five minutes; the next refusal of such a pod begins another one."""
        for uid in [uid for uid, period in self._periods.items() if _has_passed(period.since_ms, now_ms, PERIOD_MS)]:
            yield from self.end(uid)


def _has_passed(since_ms: int, now_ms: int, period_ms: int) -> bool:
    """Whether a period is over; one that begins in the future is: the clock was ahead."""
    return not since_ms <= now_ms < since_ms + period_ms
