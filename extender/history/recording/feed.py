"""Turns what the verbs and the watches see into records. Everything runs on the event loop, and takes microseconds.

Nothing is recorded before `begin`, which is called when every watch has its first list: the cards of a pod are known
then, and pods of which the history does not know the start, or the end, are found by comparing it with that list.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from extender.history.recording import card_changes, decisions, node_usage, pod_changes, refusals
from extender.history.recording.events import DecisionSource, Listed, Record, Watched
from extender.history.recording.recorder import NO_RECORDER, HistoryRecorder
from extender.history.recording.refusals import RefusalPeriods, Refused
from extender.state.fields import card_use, container_use
from extender.state.objects import GpuNode, WatchedPod
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import Namespace, NodeName, PodUid
from vgpu.pacing.fair_cache import FairCache

MARK_S: Final = 5.0
MAX_VERDICTS: Final = 1_000  # bind follows filter within milliseconds, or after seconds in which volumes are bound
MAX_DECIDED: Final = 1_000


class Feed:
    """Feeds `recorder`. `gpunodes` are the cluster's, `now_ms` is the wall clock, `replica` names this process."""

    def __init__(
        self, recorder: HistoryRecorder, gpunodes: Mapping[NodeName, GpuNode], now_ms: Callable[[], int], replica: str
    ) -> None:
        self._recorder = recorder
        self._gpunodes = gpunodes
        self._now_ms = now_ms
        self._replica = replica
        self._started_ms = now_ms()
        self._seen_ms = self._started_ms
        self._has_begun = False
        self._verdicts = FairCache[Namespace, PodUid, Refused](MAX_VERDICTS)
        self._decided: OrderedDict[PodUid, None] = OrderedDict()
        self._waiting = RefusalPeriods()

    def begin(self, pods: Iterable[WatchedPod]) -> None:
        """Record what the first list shows, and which pods it contains; nothing where there is no history."""
        if self._recorder is NO_RECORDER:
            return
        self._has_begun = True
        holding = [pod for pod in pods if pod_changes.holds_cards(pod)]
        for pod in holding:
            self.pod_changed(None, pod)
        running = frozenset(pod.uid for pod in holding if not pod.is_terminal)
        self._record(Listed(self._replica, self._started_ms, self._now_ms(), running))

    def filtered(self, pod: WatchedPod, refused: Refused, *, fits: bool) -> None:
        """Take filter's verdict: how many nodes were refused for each reason, and whether any node fits."""
        if not refused:
            return
        if not fits:
            self._all(self._waiting.add(pod, refused, self._now_ms()))
            return
        self._verdicts.put(pod.namespace, pod.uid, refused)

    def bound(self, pod: WatchedPod, node: NodeName, chosen: Assignment) -> None:
        """Take a Binding that was carried out."""
        self._all(self._waiting.end(pod.uid))
        refused = refusals.count(self._verdicts.pop(pod.uid) or {})
        self._decide(pod, node, chosen, self._now_ms(), refused, DecisionSource.BIND)
        self._decided[pod.uid] = None
        if len(self._decided) > MAX_DECIDED:
            self._decided.popitem(last=False)

    def pod_changed(self, before: WatchedPod | None, after: WatchedPod) -> None:
        """Take two versions of a pod; `before` is None where the pod is new."""
        if not self._has_begun or not pod_changes.holds_cards(after):
            return
        if not pod_changes.holds_cards(before) and after.uid not in self._decided:
            self._observe(after)
        self._all(pod_changes.starts(before, after))
        if after.is_terminal and not (before is not None and before.is_terminal):
            unseen_since = after.lifecycle.scheduled_ms if before is None else None
            self._all(pod_changes.end(after, self._now_ms(), after_ms=unseen_since))

    def pod_deleted(self, last: WatchedPod) -> None:
        """Take a pod that was deleted while the watch was connected."""
        self._end(last, after_ms=None)

    def pod_gone(self, last: WatchedPod) -> None:
        """Take a pod that a fresh list lacks: its end was not seen."""
        self._end(last, after_ms=self._seen_ms)

    def gpunode_changed(self, before: GpuNode | None, after: GpuNode) -> None:
        """Take two versions of a GPUNode."""
        self._all(card_changes.changes(before, after, self._now_ms()))
        known = before.usage if before else {}
        self._all(node_usage.used(after.node.name, new) for new in container_use.news(known, after.usage))
        measured = card_use.news(before.card_use if before else (), after.card_use)
        self._all(node_usage.card_measured(after.node.name, new) for new in measured)

    def gpunode_deleted(self, gone: GpuNode) -> None:
        """Take the deletion of a GPUNode."""
        self._all(card_changes.removed(gone, self._now_ms()))

    def mark(self, silence_s: float) -> None:
        """Record the time up to which the watch of pods has shown all changes, and the refusals that are due.

        Call it every `MARK_S`; `silence_s` is how long ago the API server last sent anything. A pod that the next
        list lacks has ended at an unknown time after the last mark: no watch has shown its end.
        """
        if self._has_begun:
            self._seen_ms = self._now_ms() - int(1000 * silence_s)
            self._record(Watched(self._replica, self._seen_ms))
            self._all(self._waiting.due(self._now_ms()))

    def _end(self, last: WatchedPod, after_ms: int | None) -> None:
        self._all(self._waiting.end(last.uid))
        if self._has_begun and pod_changes.holds_cards(last) and not last.is_terminal:
            self._all(pod_changes.end(last, self._now_ms(), after_ms=after_ms, is_deleted=True))

    def _observe(self, pod: WatchedPod) -> None:
        """Record a decision that a watch shows; its time is the one that the API server wrote, if it can be read."""
        assert isinstance(pod.assignment, Assignment)  # noqa: S101 - the pod holds cards
        self._decide(
            pod, pod.node, pod.assignment, pod.lifecycle.scheduled_ms or self._now_ms(), {}, DecisionSource.WATCH
        )

    def _decide(
        self,
        pod: WatchedPod,
        node: NodeName,
        chosen: Assignment,
        at_ms: int,
        refused: Mapping[str, int],
        source: DecisionSource,
    ) -> None:
        request = pod.parsed.request
        if request is not None and self._recorder is not NO_RECORDER:
            known = self._gpunodes.get(node)
            self._record(
                decisions.decision(
                    pod, known, request, chosen, node_name=node, at_ms=at_ms, refused=refused, source=source
                )
            )

    def _all(self, records: Iterable[Record]) -> None:
        for record in records:
            self._record(record)

    def _record(self, record: Record) -> None:
        self._recorder.record(record)
