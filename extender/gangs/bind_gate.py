"""Holds the Bindings of a gang back until every member has come to be bound.

kube-scheduler binds pod by pod, each Binding in a goroutine of its own. A member may still be refused after filter: by
another plugin, by a volume, by a deadline. So no member is bound before kube-scheduler has called bind for all of them.
A call waits for the others for a second, which is what kube-scheduler's `httpTimeout` leaves; then it is refused, and
kube-scheduler tries the pod again. A member that has arrived once counts until the plan ends.
"""

import asyncio
import contextlib
from typing import Final

from extender.gangs import waiting_text
from extender.gangs.plan import GangPlan
from extender.gangs.tracker import GangTracker
from extender.lead.leader import Leader
from extender.state.gang_members import GangKey, key_of
from extender.state.objects import WatchedPod
from vgpu.domain.cards import reasons
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName

WAIT_S: Final = 1.0  # with the 3 s of a Binding and the 1 s of a read below kube-scheduler's httpTimeout of 5 s


class BindGate:
    """Asked by bind before it reserves a pod's cards."""

    def __init__(self, tracker: GangTracker, leader: Leader) -> None:
        self._gangs = tracker.known
        self._plans = tracker.plans
        self._leader = leader

    async def admit(self, pod: WatchedPod, node: NodeName) -> str:
        """Return why a pod must not be bound to a node now; empty where it may, which is so until the next await."""
        key = key_of(pod)
        if key is None or pod.parsed.request is None or self._leader.refusal():
            return ""  # bind itself refuses where this replica does not lead
        progress = self._gangs.get(key)
        plan = progress.plan
        if progress.is_started:
            return ""
        if plan is None or not self._is_place(plan, pod, node):
            return _refusal("the pod is not planned on this node; it is filtered again")
        plan.arrived.add(pod.uid)
        self._plans.open_gate(key)
        if not plan.gate.is_set():
            await _wait(plan.gate)
        return self._pass(key, plan, pod, node)

    def _pass(self, key: GangKey, plan: GangPlan, pod: WatchedPod, node: NodeName) -> str:
        """Let a member through, in one step with bind's reservation."""
        progress = self._gangs.get(key)
        if progress.is_started:
            return ""
        if progress.plan is not plan or not self._is_place(plan, pod, node):
            return _refusal("the gang's plan has changed; the pod is filtered again")
        if not plan.gate.is_set():
            return _refusal(waiting_text.arrivals(self._gangs.watched(key), plan))
        if not self._plans.is_reserved(pod):
            return _refusal("the planned cards can be used no longer; the pod is filtered again")
        plan.posted.add(pod.uid)
        return ""

    def _is_place(self, plan: GangPlan, pod: WatchedPod, node: NodeName) -> bool:
        place = plan.places.get(pod.uid)
        return place is not None and place.node == node


async def _wait(gate: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WAIT_S):
            await gate.wait()


def _refusal(detail: str) -> str:
    return f"{reasons.text(Reason.GANG_WAITS)}: {detail}"
