"""The reason under which a waiting pod is counted in the metrics. Pure and cheap: it is asked for each waiting pod."""

from typing import Final

from extender.explain.last_decisions import LastDecision
from extender.state.objects import WatchedPod
from vgpu.domain.cards.reasons import Reason

NOT_TRIED: Final = "NotTried"
ALL: Final = (*map(str, Reason), NOT_TRIED)


def of(pod: WatchedPod, last: LastDecision | None) -> str:
    """Return why a pod waits: a reason's code, or NOT_TRIED before the first decision on it.

    A pod of kube-scheduler's own refusals (taints, volumes) was never decided on here: SchedulerRefused.
    """
    if pod.parsed.problems:
        return str(Reason.INVALID_REQUEST)
    if pod.scheduling.is_gated:
        return str(Reason.SCHEDULING_GATED)
    if last is not None and (first := last.first) is not None:
        return str(first)
    if not pod.asked.admitted:
        return str(Reason.NOT_ADMITTED)
    return str(Reason.SCHEDULER_REFUSED) if pod.is_unschedulable else NOT_TRIED
