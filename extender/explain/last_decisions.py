"""The last decision on each pod that no node could take: when, how often, and by which reasons."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.state.objects import WatchedPod
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, PodUid
from vgpu.pacing.fair_cache import FairCache

MAX_PODS: Final = 10_000


@dataclass(frozen=True, slots=True)
class LastDecision:
    """What filter last answered.

    Attributes:
        at_ms: wall clock of the answer, Unix milliseconds.
        attempts: number of answers since the pod, or this process, began to wait.
        reasons: how many nodes were refused for each reason.
    """

    at_ms: int
    attempts: int
    reasons: Mapping[Reason, int]

    @property
    def first(self) -> Reason | None:
        """The reason that people need first; None where no node was refused."""
        return next((reason for reason, _ in reasons.ordered(self.reasons)), None)


class LastDecisions:
    """Keeps the decisions of the 10,000 pods that were refused last. `now_ms` is the wall clock.

    Where there are more, the namespace of most loses its oldest one: what others ask about their pods is answered.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_uid = FairCache[Namespace, PodUid, LastDecision](MAX_PODS)

    def refused(self, pod: WatchedPod, counted: Mapping[Reason, int]) -> None:
        """Take an answer by which no node can take a pod: how many nodes were refused for each reason."""
        before = self._by_uid.get(pod.uid)
        last = LastDecision(self._now_ms(), before.attempts + 1 if before else 1, counted)
        self._by_uid.put(pod.namespace, pod.uid, last)

    def get(self, uid: PodUid) -> LastDecision | None:
        """Return the last decision on a pod; None where there was none."""
        return self._by_uid.get(uid)

    def known(self) -> dict[PodUid, LastDecision]:
        """Return the decisions by the UID of their pod."""
        return dict(self._by_uid.items())
