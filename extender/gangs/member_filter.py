"""Answers filter for the members of gangs: the one node that is planned for each.

This is the one exception to a filter that reserves nothing (ADR 75). A plan is made only by the leader, only for a gang
whose members the watch has shown, and once: further calls are answered from it. One gang is planned at a time, so that
two gangs do not take each other's cards while both are planned.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto

from extender.gangs.candidate_nodes import Judged
from extender.gangs.plan_maker import MemberCall, PlanMaker
from extender.gangs.time_slices import Pause
from extender.gangs.tracker import GangTracker
from extender.index.answer import IndexAnswer
from extender.index.judge import NodeJudge
from extender.lead.leader import Leader
from extender.state.gang_members import key_of
from extender.state.objects import WatchedPod
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName
from vgpu.placement.gang_attempt import MemberPlace


class _Open(Enum):
    """What is to be done about a member for which there is no answer yet."""

    PLAN = auto()
    PLACE_ALONE = auto()


class MemberFilter:
    """Answers from the plans that gangs have, and has missing ones made."""

    def __init__(self, tracker: GangTracker, plan_maker: PlanMaker, leader: Leader) -> None:
        self._tracker = tracker
        self._gangs = tracker.known
        self._plans = tracker.plans
        self._cluster = tracker.cluster
        self._plan_maker = plan_maker
        self._leader = leader
        self._judge = NodeJudge(tracker.cluster.rows.index)
        self._busy = asyncio.Lock()

    async def answer(
        self, pod: WatchedPod, names: Sequence[NodeName], judged: Judged, pause: Pause
    ) -> IndexAnswer | None:
        """Return the answer for a member of a gang; None for a pod that is placed alone.

        The index must be up to date, and is so when None is returned. `judged` judges a pod by itself on the nodes
        named; `pause` lets other calls be answered.
        """
        key = key_of(pod)
        if key is None:
            return None
        asked = MemberCall(key, pod.uid, names, judged, pause)
        found = self._known(asked)
        if found is _Open.PLAN:
            found = await self._planned(asked)
        return None if found is _Open.PLACE_ALONE else self._answer(asked, found)

    async def _planned(self, asked: MemberCall) -> MemberPlace | Reason | _Open:
        """Plan a gang when no other one is planned; meanwhile the gang may have been planned, or may have started."""
        async with self._busy:
            await self._cluster.index(asked.pause)
            found = self._known(asked)
            return await self._plan_maker.plan(asked) if found is _Open.PLAN else found

    def _known(self, asked: MemberCall) -> MemberPlace | Reason | _Open:
        """Return the answer that needs no plan."""
        pod = self._gangs.members(asked.key).get(asked.uid)
        if pod is None or self._leader.refusal():
            return Reason.GANG_WAITS
        found = self._gangs.watched(asked.key)
        if self._gangs.get(asked.key).is_started or pod.node:
            return _Open.PLACE_ALONE
        return self._tracker.hindrance(asked.key, found) or self._from_plan(asked, pod, found.needs) or _Open.PLAN

    def _from_plan(self, asked: MemberCall, pod: WatchedPod, needs: int) -> MemberPlace | Reason | None:
        """Return a member's place, from the gang's plan where that is still good."""
        plan = self._gangs.get(asked.key).plan
        place = plan.places.get(asked.uid) if plan else None
        if plan is None or place is None:
            return None
        if place.node not in asked.names:
            plan.bar(asked.uid, place.node)
        elif self._plans.is_reserved(pod) and len(plan.places) >= needs:  # fewer where a planned member was deleted
            plan.answered.add(asked.uid)
            return place
        if asked.uid in plan.posted and self._cluster.reservations.get(asked.uid, place.node):
            return Reason.GANG_WAITS  # the outcome of its Binding is not known
        return None

    def _answer(self, asked: MemberCall, found: MemberPlace | Reason | _Open) -> IndexAnswer:
        if not isinstance(found, MemberPlace):
            self._tracker.refused.add(asked.key, asked.uid)
            return self._judge.alike(asked.names, found if isinstance(found, Reason) else Reason.GANG_WAITS)
        answer = self._judge.alike(asked.names, Reason.GANG_PLANNED_ELSEWHERE)
        answer.decide(list(asked.names).index(found.node), None)
        return answer
