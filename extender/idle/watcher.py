"""Takes the nodes' reports, decides about each pod of a report, and warns or acts as long as this replica leads.

The pods of a gang are idle together: while one of them computes, the others wait for it in their collectives, or will.
So each is idle for as long as the one that was used last, and they are acted on in one step (ADR 191).

Namespaces have turns: a crowd of idle pods delays what is done about the pods of others by one request.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from extender.effects import pod_conditions
from extender.effects.event_recorder import EventRecorder
from extender.idle import pod_use
from extender.idle.actions import Act, IdlePod
from extender.idle.namespaces import Namespaces
from extender.idle.verdicts import Verdicts
from extender.lead.leader import Leader
from extender.state.objects import GpuNode, WatchedPod
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.asks import idle
from vgpu.domain.asks.idle import IdleAction, IdlePodUse, IdleVerdict, Rule
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import NO_NODE, Namespace, NodeName, PodUid
from vgpu.pacing.fair_queue import FairQueue

IDLE: Final = "Idle"
WARNED: Final = "IdleWarning"
FAILED: Final = "IdleActionFailed"
STALE_NS: Final = 15_000_000_000  # a report that waited longer says nothing of now
_NS_PER_MS: Final = 1_000_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Due:
    """What a report led to; `rule` is None where the warning is taken back."""

    at_ns: int
    idle_ms: int
    rule: Rule | None
    verdict: IdleVerdict


class IdleWatcher:
    """The idle pods of the cluster. `clock_ns` is monotonic, `now` the wall clock, `grace_s` precedes an action."""

    def __init__(
        self,
        client: KubernetesClient,
        pods: Mapping[PodUid, WatchedPod],
        namespaces: Namespaces,
        recorder: EventRecorder,
        clock_ns: Callable[[], int],
        now: Callable[[], datetime],
        *,
        grace_s: float,
        acts: bool,
        gang_of: Callable[[WatchedPod], Iterable[WatchedPod]] = lambda _: (),
    ) -> None:
        """`acts`: whether anything else than a report is done; the administrator decides. `gang_of`: a pod's gang."""
        self.verdicts = Verdicts()
        self._client = client
        self._pods = pods
        self._namespaces = namespaces
        self._recorder = recorder
        self._clock_ns = clock_ns
        self._now = now
        self._grace_s = grace_s
        self._acts = acts
        self._gang_of = gang_of
        self._warned: dict[str, int] = {}
        self._due = FairQueue[Namespace, PodUid, _Due]()
        self._is_due = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of pods that are not warned or acted on yet. The one at work counts."""
        return len(self._due)

    def rule_of(self, pod: WatchedPod) -> Rule | None:
        """Return what is done about a pod, and when."""
        found = idle.rule(pod.idle_setting, self._namespaces.setting(pod.namespace))
        return Rule(found.after_s, IdleAction.REPORT) if found and not self._acts else found

    def is_due(self, pod: WatchedPod, rule: Rule) -> bool:
        """Whether a pod's last report calls for the action of a rule."""
        return self.verdicts.calls_for_action(pod.uid, rule, self._clock_ns())

    def take(self, before: GpuNode | None, after: GpuNode) -> None:
        """Take two versions of a GPUNode. How old the first version is that is seen of a node is not known."""
        if before is None:
            return
        for uid, uses in after.usage.items():
            pod = self._pods.get(uid)
            if uses != before.usage.get(uid) and pod is not None and _is_running(pod, after.node.name):
                self._judge(pod, uses)

    def forget(self, uid: PodUid) -> None:
        """Take a pod's deletion."""
        self._warned.pop(uid, None)
        self.verdicts.forget(uid)

    async def run(self, leader: Leader, actions: Mapping[IdleAction, Act], count: Callable[[str, str], None]) -> None:
        """Carry out the verdicts (warn, act, take a warning back) while this replica leads, until cancelled.

        `count` is called with the action and its outcome.
        """
        while True:
            await self._is_due.wait()
            self._is_due.clear()
            while self._due:
                namespace, uid, due = self._due.first()
                pod = self._pods.get(uid)
                is_current = self._clock_ns() - due.at_ns <= STALE_NS
                if pod is not None and not pod.scheduling.is_terminating and is_current and not leader.refusal():
                    await self._carry_out(pod, due, actions, count)
                self._due.done(namespace, uid, due)  # unless a later report came meanwhile

    def _judge(self, pod: WatchedPod, uses: pod_use.Uses) -> None:
        now_ns, rule, own_ms = self._clock_ns(), self.rule_of(pod), pod_use.idle_ms(pod, uses)
        if pod.is_warned:
            self._warned.setdefault(pod.uid, now_ns)
        used_ns = None if own_ms is None else now_ns - own_ms * _NS_PER_MS
        last_ns = self._last_use(pod, used_ns, now_ns)
        idle_ms = None if last_ns is None else (now_ns - last_ns) // _NS_PER_MS
        verdict = idle.decide(rule, IdlePodUse(last_ns, self._warned.get(pod.uid)), now_ns, self._grace_s)
        self.verdicts.put(pod.uid, now_ns, rule=rule, verdict=verdict, used_ns=used_ns)
        if verdict is not IdleVerdict.NOTHING:
            self._add(pod, _Due(now_ns, idle_ms or 0, rule, verdict))
        elif pod.is_warned and _is_over(rule, idle_ms):
            self._add(pod, _Due(now_ns, idle_ms or 0, None, verdict))

    def _others(self, pod: WatchedPod) -> Sequence[WatchedPod]:
        """Return the other pods of a pod's gang that hold cards."""
        return [
            other
            for other in self._gang_of(pod)
            if other.uid != pod.uid and other.parsed.request is not None and _is_running(other, other.node or NO_NODE)
        ]

    def _last_use(self, pod: WatchedPod, used_ns: int | None, now_ns: int) -> int | None:
        """Return when any pod of a pod's gang used a card last, None where that is unknown of one of them."""
        times = [used_ns, *(self.verdicts.used_ns(other.uid, now_ns) for other in self._others(pod))]
        known = [time for time in times if time is not None]
        return max(known) if len(known) == len(times) else None

    def _add(self, pod: WatchedPod, due: _Due) -> None:
        self._due.put(pod.namespace, pod.uid, due)
        self._is_due.set()

    async def _carry_out(
        self, pod: WatchedPod, due: _Due, actions: Mapping[IdleAction, Act], count: Callable[[str, str], None]
    ) -> None:
        try:
            if due.rule is None:
                await self._take_back(pod)
            elif due.verdict is IdleVerdict.ACT:
                await self._act_on_gang(pod, due.rule, due.idle_ms, actions, count)
            elif due.verdict is IdleVerdict.WARN:
                await self._warn(pod, due.rule, due.idle_ms)
                count(due.rule.action, "warned")
            else:
                self._recorder.record(pod.reference, IDLE, _unused(pod, due.rule.after_s))
        except KubernetesError as error:
            log.warning("idle pod %s/%s: %s", pod.namespace, pod.name, error)
            count(due.rule.action if due.rule else "none", "error")

    async def _act_on_gang(
        self,
        pod: WatchedPod,
        rule: Rule,
        idle_ms: int,
        actions: Mapping[IdleAction, Act],
        count: Callable[[str, str], None],
    ) -> None:
        """Act on a pod with its gang; the last pod of a gang whose time has come brings the others."""
        others = self._others(pod)
        if all(self.is_due(other, rule) for other in others):
            await self._act(IdlePod(pod, rule, idle_ms, tuple(others)), actions[rule.action], count)
            for other in others:  # it is acted on once, also where the watch does not show yet that it leaves
                self._due.pop(other.namespace, other.uid)

    async def _act(self, due: IdlePod, act: Act, count: Callable[[str, str], None]) -> None:
        refusal = await act(due)
        count(due.rule.action, "refused" if refusal else "done")
        if refusal:
            self._recorder.record(due.pod.reference, FAILED, f"{due.rule.action} is not possible: {refusal}")
        else:
            log.info("%s of idle pod %s/%s", due.rule.action, due.pod.namespace, due.pod.name)

    async def _warn(self, pod: WatchedPod, rule: Rule, idle_ms: int) -> None:
        unless = "" if _is_synthetic(pod) else ", unless a kernel runs"
        message = (
            f"{_unused(pod, idle_ms / 1000)}; {rule.action} follows in {idle.duration_text(self._grace_s)} or later"
            f"{unless}. To keep the pod: kubectl annotate pod {pod.name} -n {pod.namespace} --overwrite "
            f"{names.IDLE_AFTER}={idle.NEVER}"
        )
        await self._set_condition(pod, pod_conditions.TRUE, "NoKernels", message)
        self._recorder.record(pod.reference, WARNED, message)
        self._warned[pod.uid] = self._clock_ns()

    async def _take_back(self, pod: WatchedPod) -> None:
        await self._set_condition(
            pod, pod_conditions.FALSE, "InUse", "a kernel has run, or the pod is not to be stopped any more"
        )
        self._warned.pop(pod.uid, None)

    async def _set_condition(self, pod: WatchedPod, status: str, reason: str, message: str) -> None:
        await pod_conditions.write(self._client, pod, names.IDLE_CONDITION, status, reason, message, self._now())


def _is_running(pod: WatchedPod, node: NodeName) -> bool:
    return pod.node == node and not pod.is_terminal and not pod.scheduling.is_terminating


def _is_over(rule: Rule | None, idle_ms: int | None) -> bool:
    """Whether a warning no longer holds; it stays while the idle time is unknown."""
    return rule is None or rule.action is IdleAction.REPORT or (idle_ms is not None and idle_ms < rule.after_s * 1000)


def _unused(pod: WatchedPod, seconds: float) -> str:
    what = "nothing but synthetic load" if _is_synthetic(pod) else "no kernel of this pod"
    return f"{what} has run on its cards for {idle.duration_text(seconds)}"


def _is_synthetic(pod: WatchedPod) -> bool:
    """Whether a pod's kernels are a load for tests, and no use."""
    return pod.scheduling.labels.get(names.SYNTHETIC) == "true"
