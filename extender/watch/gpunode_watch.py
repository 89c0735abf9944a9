"""Takes what the watch of GPUNodes shows."""

from extender.effects import waker as waking
from extender.effects.event_recorder import EventRecorder
from extender.effects.node_refusals import NodeRefusals
from extender.effects.waker import Waker
from extender.history.recording.feed import Feed
from extender.idle.watcher import IdleWatcher
from extender.state import card_owners
from extender.state import objects as reading
from extender.state.cluster import Cluster
from extender.state.objects import GpuNode
from extender.watch.watches import WatchedKind
from vgpu.domain import names
from vgpu.domain.cards import ownership
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName


class GpuNodeWatch:
    """Takes GPUNodes."""

    def __init__(
        self,
        cluster: Cluster,
        recorder: EventRecorder,
        refusals: NodeRefusals,
        waker: Waker,
        history: Feed,
        idle: IdleWatcher,
    ) -> None:
        self.kind = WatchedKind("gpunodes", names.GPUNODES_PATH, self, reading.gpunode)
        self._cluster = cluster
        self._history = history
        self._idle = idle
        self._recorder = recorder
        self._refusals = refusals
        self._waker = waker
        cluster.owners.listen(self._card_moved)

    def replace(self, objects: list[GpuNode], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        self._delete(*self._cluster.objects.gpunodes.keys() - {gpunode.node.name for gpunode in objects})
        self._upsert(*objects)

    def upsert(self, obj: GpuNode) -> None:
        """Take a GPUNode that is new or changed."""
        self._idle.take(
            self._cluster.objects.gpunodes.get(obj.node.name), obj
        )  # a list says not how old its reports are
        self._upsert(obj)

    def delete(self, obj: GpuNode) -> None:
        """Take a GPUNode's deletion."""
        self._delete(obj.node.name)

    def _state(self, node: NodeName) -> NodeState | None:
        return self._cluster.states.of(node) if node in self._cluster.objects.gpunodes else None

    def _delete(self, *nodes: NodeName) -> None:
        were_duplicates = list(self._cluster.owners.duplicates)
        for gone in (self._cluster.objects.gpunodes[node] for node in nodes if node in self._cluster.objects.gpunodes):
            self._history.gpunode_deleted(gone)
        self._cluster.updates.delete_gpunodes(*nodes)
        for node in were_duplicates:
            self._waker.changed(node)
        for node in nodes:
            self._refusals.forget(node)

    def _upsert(self, *gpunodes: GpuNode) -> None:
        known = self._cluster.objects.gpunodes
        changed = [
            gpunode.node
            for gpunode in gpunodes
            if (old := known.get(gpunode.node.name)) is None or old.node != gpunode.node
        ]
        for gpunode in gpunodes:
            self._history.gpunode_changed(known.get(gpunode.node.name), gpunode)
        before = {node.name: self._state(node.name) for node in changed}
        self._cluster.updates.upsert_gpunodes(*gpunodes)
        for node, state in before.items():
            if state is None or waking.can_take_more(state, self._cluster.states.of(node)):
                self._waker.changed(node)
        for gpunode in gpunodes:
            self._refusals.take(gpunode)
        self._tell_duplicates()

    def _card_moved(self, node: NodeName) -> None:
        """Take a node where a card begins or ceases to count because a device plugin fell silent, or is back."""
        self._waker.changed(node)
        self._tell_duplicates()

    def _tell_duplicates(self) -> None:
        for node, duplicates in self._cluster.owners.duplicates.items():
            about = self._cluster.objects.gpunodes[node].reference
            self._recorder.record(about, ownership.DUPLICATE, card_owners.message(duplicates))
