"""Takes what the watch of pods shows."""

from typing import Final

from msgspec import structs

from extender.effects.event_recorder import EventRecorder
from extender.effects.waker import Waker
from extender.explain.unschedulable import UnschedulablePods
from extender.history.recording.feed import Feed
from extender.idle.watcher import IdleWatcher
from extender.state import objects as reading
from extender.state.cluster import Cluster
from extender.state.host_usage import HostPod
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from extender.watch.watches import WatchedKind
from vgpu.domain.grants.assignment_trust import Distrust

UNTRUSTED: Final = "AssignmentNotTrusted"


class PodWatch:
    """Takes pods; of those that have nothing to do with GPUs, what they take of their nodes' CPU and memory."""

    def __init__(
        self,
        cluster: Cluster,
        reader: PodReader,
        unschedulable: UnschedulablePods,
        recorder: EventRecorder,
        waker: Waker,
        history: Feed,
        idle: IdleWatcher,
    ) -> None:
        self.kind = WatchedKind("pods", "/api/v1/pods", self, reader.watched)
        self._cluster = cluster
        self._history = history
        self._idle = idle
        self._unschedulable = unschedulable
        self._waker = waker
        self._recorder = recorder

    def replace(self, objects: list[WatchedPod | HostPod | None], version: str) -> None:
        """Take a full list."""
        before = dict(self._cluster.objects.pods)
        pods = [_last_readable(before.get(pod.uid), pod) for pod in objects if isinstance(pod, WatchedPod)]
        self._cluster.updates.replace_pods(pods, reading.version(version))
        others = [other for other in objects if isinstance(other, HostPod)]
        self._cluster.updates.replace_host_pods([*others, *(pod.on_host for pod in pods)])
        for pod in pods:
            self._learn(before.get(pod.uid), pod)
        for uid in before.keys() - {pod.uid for pod in pods}:
            self._waker.forget(uid)
            self._idle.forget(uid)
            self._history.pod_gone(before[uid])
        for pod in pods:
            self._history.pod_changed(before.get(pod.uid), pod)
            self._report(pod)

    def upsert(self, obj: WatchedPod | HostPod | None) -> None:
        """Take a pod that is new or changed."""
        if isinstance(obj, HostPod):
            self._cluster.updates.upsert_host_pod(obj)
        elif obj is not None:
            known = self._cluster.objects.pods.get(obj.uid)
            pod = obj if obj.is_readable else _last_readable(known, obj)
            self._history.pod_changed(known, pod)
            self._cluster.updates.upsert_pod(pod)
            self._cluster.updates.upsert_host_pod(pod.on_host)
            self._learn(known, pod)
            self._report(pod)
            if pod.node and not (known and known.node):
                self._waker.joined(pod.node)

    def _learn(self, known: WatchedPod | None, pod: WatchedPod) -> None:
        if known is None:
            self._cluster.demand.see(pod)

    def delete(self, obj: WatchedPod | HostPod | None) -> None:
        """Take a pod's deletion."""
        if obj is not None:
            self._cluster.updates.delete_host_pod(obj.uid)
        if isinstance(obj, WatchedPod):
            self._history.pod_deleted(obj)
            self._cluster.updates.delete_pod(obj)
            self._waker.forget(obj.uid)
            self._idle.forget(obj.uid)

    def _report(self, obj: WatchedPod) -> None:
        """Say why a pod waits, or why nothing is counted for it."""
        self._unschedulable.add(obj)
        self._waker.take(obj)
        if obj.node and not obj.is_terminal and isinstance(obj.assignment, Distrust):
            message = f"nothing is counted for this pod: {obj.assignment.detail}"
            self._recorder.record(obj.reference, UNTRUSTED, message)


def _last_readable(known: WatchedPod | None, obj: WatchedPod) -> WatchedPod:
    """Return a pod that cannot be read as it was last readable: its assignment never changes and still counts."""
    if obj.is_readable or known is None:
        return obj
    return structs.replace(known, node=obj.node, is_terminal=obj.is_terminal, version=obj.version)
