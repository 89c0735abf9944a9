"""The watches that keep the cluster's state up to date: pods, Nodes, GPUNodes and Leases."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import structs

from extender.effects import waker as waking
from extender.effects.event_recorder import EventRecorder
from extender.effects.node_refusals import NodeRefusals
from extender.effects.waker import Waker
from extender.explain.unschedulable import UnschedulablePods
from extender.history.recording.feed import Feed
from extender.idle import namespaces
from extender.idle.namespaces import Namespaces
from extender.idle.watcher import IdleWatcher
from extender.state import budgets, card_owners, pod_groups
from extender.state import objects as reading
from extender.state.budgets import Budgets
from extender.state.cluster import Cluster
from extender.state.host_usage import HostPod
from extender.state.objects import GpuNode, KubeNode, WatchedLease, WatchedPod
from extender.state.pod_groups import PodGroups
from extender.state.pod_reader import PodReader
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.domain import names
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.cards.share import NodeState
from vgpu.domain.grants.assignment_trust import Distrust

LEASE_SILENCE_S: Final = 10.0  # the leading extender alone renews its Lease every 2 s
ABSENT_S: Final = 30.0  # a kind of PodGroup may be installed while the extender runs
UNTRUSTED: Final = "AssignmentNotTrusted"


class PodWatch:
    """Takes pods; of those that have nothing to do with GPUs, what they take of their nodes' CPU and memory."""

    def __init__(
        self,
        cluster: Cluster,
        unschedulable: UnschedulablePods,
        recorder: EventRecorder,
        waker: Waker,
        history: Feed,
        idle: IdleWatcher,
    ) -> None:
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


class NodeWatch:
    """Takes Nodes: what their kubelets would allocate."""

    def __init__(self, cluster: Cluster, waker: Waker) -> None:
        self._cluster = cluster
        self._waker = waker

    def replace(self, objects: list[KubeNode], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        more = [node.name for node in objects if self._offers_more(node)]
        self._cluster.updates.replace_nodes(objects)
        for node in more:
            self._waker.changed(node)

    def upsert(self, obj: KubeNode) -> None:
        """Take a Node that is new or changed."""
        offers_more = self._offers_more(obj)
        self._cluster.updates.upsert_nodes(obj)
        if offers_more:
            self._waker.changed(obj.name)

    def delete(self, obj: KubeNode) -> None:
        """Take a Node's deletion."""
        self._cluster.updates.delete_nodes(obj.name)

    def _offers_more(self, node: KubeNode) -> bool:
        """Whether the kubelet offers more devices than before."""
        before = self._cluster.objects.nodes.get(node.name)
        known = before.allocatable if before is not None else {}
        return any(amount > known.get(resource, 0) for resource, amount in node.allocatable.items())


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
        self._cluster = cluster
        self._history = history
        self._idle = idle
        self._recorder = recorder
        self._refusals = refusals
        self._waker = waker

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

    def _state(self, node: str) -> NodeState | None:
        return self._cluster.states.of(node) if node in self._cluster.objects.gpunodes else None

    def _delete(self, *nodes: str) -> None:
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
        for node, duplicates in self._cluster.owners.duplicates.items():
            about = self._cluster.objects.gpunodes[node].reference
            self._recorder.record(about, card_owners.DUPLICATE, card_owners.message(duplicates))


class LeaseWatch:
    """Takes the Leases of our namespace: every device plugin's, and the extender's own."""

    def __init__(self, cluster: Cluster, waker: Waker) -> None:
        self._leases = cluster.leases
        self._waker = waker

    def replace(self, objects: list[WatchedLease], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        for name in set(self._leases.names()) - {lease.name for lease in objects}:
            self._leases.remove(name)
        for lease in objects:
            self.upsert(lease)

    def upsert(self, obj: WatchedLease) -> None:
        """Take a Lease that is new or changed."""
        was_fresh = self._leases.is_fresh(obj.name)
        self._leases.put(obj)
        if not was_fresh and (node := names.node_of_lease(obj.name)) and self._leases.is_fresh(obj.name):
            self._waker.changed(node)

    def delete(self, obj: WatchedLease) -> None:
        """Take a Lease's deletion."""
        self._leases.remove(obj.name)


class Synced(Protocol):
    """Says whether the cluster's state is complete."""

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list."""


@dataclass(frozen=True, slots=True)
class Watches:
    """The reflectors."""

    pods: Reflector
    nodes: Reflector
    gpunodes: Reflector
    leases: Reflector
    budgets: Reflector
    coscheduling_groups: Reflector
    kubernetes_groups: Reflector
    namespaces: Reflector

    @property
    def is_synced(self) -> bool:
        """Whether every watch has had its first list: before that no verb may answer.

        The watches of PodGroups are left out: only members of such gangs wait for them.
        """
        return all(each.synced.is_set() for each in self._all())

    async def wait(self) -> None:
        """Return when every watch has had its first list."""
        if self.is_synced:
            return
        await asyncio.gather(*(each.synced.wait() for each in self._all()))

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in (*self._all(), self.coscheduling_groups, self.kubernetes_groups):
                group.create_task(each.run())

    @property
    def by_name(self) -> dict[str, Reflector]:
        """The reflectors by what they watch."""
        return {
            "pods": self.pods,
            "nodes": self.nodes,
            "gpunodes": self.gpunodes,
            "leases": self.leases,
            "poddisruptionbudgets": self.budgets,
            "podgroups.scheduling.x-k8s.io": self.coscheduling_groups,
            "podgroups.scheduling.k8s.io": self.kubernetes_groups,
            "namespaces": self.namespaces,
        }

    def _all(self) -> tuple[Reflector, ...]:
        return self.pods, self.nodes, self.gpunodes, self.leases, self.budgets, self.namespaces


def watches(
    client: KubernetesClient,
    cluster: Cluster,
    unschedulable: UnschedulablePods,
    recorder: EventRecorder,
    disruption_budgets: Budgets,
    refusals: NodeRefusals,
    waker: Waker,
    history: Feed,
    groups: Mapping[GangSource, PodGroups],
    reader: PodReader,
    idle: IdleWatcher,
    idle_defaults: Namespaces,
    *,
    namespace: str,
    jitter: Callable[[], float],
) -> Watches:
    """Build the reflectors that feed all these parts.

    Our Leases are in `namespace`. `jitter` returns a random number from 0 to 1.
    """
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    pods = PodWatch(cluster, unschedulable, recorder, waker, history, idle)
    gpunodes = GpuNodeWatch(cluster, recorder, refusals, waker, history, idle)
    return Watches(
        pods=Reflector(client, "/api/v1/pods", pods, jitter=jitter, decode=reader.watched),
        nodes=Reflector(client, "/api/v1/nodes", NodeWatch(cluster, waker), jitter=jitter, decode=reading.node),
        gpunodes=Reflector(client, names.GPUNODES_PATH, gpunodes, jitter=jitter, decode=reading.gpunode),
        leases=Reflector(
            client, leases, LeaseWatch(cluster, waker), jitter=jitter, silence_s=LEASE_SILENCE_S, decode=reading.lease
        ),
        budgets=Reflector(client, budgets.PATH, disruption_budgets, jitter=jitter, decode=budgets.decode),
        coscheduling_groups=Reflector(
            client,
            names.COSCHEDULING_GROUPS_PATH,
            groups[GangSource.COSCHEDULING],
            jitter=jitter,
            absent_s=ABSENT_S,
            decode=pod_groups.of_coscheduling,
        ),
        kubernetes_groups=Reflector(
            client,
            names.KUBERNETES_GROUPS_PATH,
            groups[GangSource.KUBERNETES],
            jitter=jitter,
            absent_s=ABSENT_S,
            decode=pod_groups.of_kubernetes,
        ),
        namespaces=Reflector(client, namespaces.PATH, idle_defaults, jitter=jitter, decode=namespaces.decode),
    )
