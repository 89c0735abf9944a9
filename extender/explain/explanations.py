"""Tells the owners of pods that no node can take why their pods wait, after filter has been answered.

To place a pod on up to 40 nodes for the words of an Event takes longer than to judge thousands of nodes for the reply,
and kube-scheduler needs the reply only.
"""

import asyncio
from typing import Final

from extender.effects.event_recorder import EventRecorder
from extender.explain import pending_text
from extender.index.answer import IndexAnswer
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from extender.verbs.filter import Filter
from vgpu.domain.identifiers import PodUid

MAX_WAITING: Final = 64  # answers, each with all names of its call; beyond that, calls wait for their own explanation


class Explanations:
    """Takes refused pods, and records an Event about one in each turn of the event loop: calls are answered between."""

    def __init__(self, cluster: Cluster, node_filter: Filter, recorder: EventRecorder) -> None:
        self._cluster = cluster
        self._filter = node_filter
        self._recorder = recorder
        self._waiting: dict[PodUid, tuple[WatchedPod, IndexAnswer]] = {}

    def add(self, pod: WatchedPod, answer: IndexAnswer) -> None:
        """Take a pod that no node of an answer can take."""
        if len(self._waiting) >= MAX_WAITING and pod.uid not in self._waiting:
            self._explain(pod, answer)
            return
        if not self._waiting:
            self._continue()
        self._waiting[pod.uid] = pod, answer

    def _continue(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)  # the event loop logs what a callback raises

    def _next(self) -> None:
        pod, answer = self._waiting.pop(next(iter(self._waiting)))
        if self._waiting:
            self._continue()
        self._explain(pod, answer)

    def _explain(self, pod: WatchedPod, answer: IndexAnswer) -> None:
        shown = self._filter.nodes(pod, pending_text.first(answer))
        why = pending_text.why_pending(pod, answer.reasons, shown.refused, self._cluster)
        self._recorder.record(pod.reference, *why)
