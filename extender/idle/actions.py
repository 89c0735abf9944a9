"""What can be done with an idle pod. An action is a row of `actions`; suspending a container would be another one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from extender.effects import eviction
from extender.effects.event_recorder import EventRecorder
from extender.idle import owners
from extender.idle.namespaces import Namespaces
from extender.idle.owners import STOPPED_BY, ScalableOwner
from extender.idle.sizes import Sizes
from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.asks import idle
from vgpu.domain.asks.idle import IdleAction, Rule
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import PodUid

EVICTED: Final = "IdleEvicted"
SCALED: Final = "IdleScaledToZero"
STOPPED: Final = "IdleNotebookStopped"


@dataclass(frozen=True, slots=True)
class IdlePod:
    """A pod that is due, why, and for how long it has been idle; `others` are those of its gang, which are due too."""

    pod: WatchedPod
    rule: Rule
    idle_ms: int
    others: tuple[WatchedPod, ...] = ()

    @property
    def why(self) -> str:
        """The reason in words."""
        return f"no kernel has run on its cards for {idle.duration_text(self.idle_ms / 1000)}"


class Act(Protocol):
    """An action."""

    async def __call__(self, due: IdlePod) -> str:
        """Carry the action out; return why it cannot be, empty where it is done. Raises KubernetesError."""


@dataclass(frozen=True, slots=True)
class Means:
    """What the actions use.

    Attributes:
        client: for the API server.
        pods: those that the watch shows, by UID.
        namespaces: the settings of namespaces.
        recorder: of Events.
        sizes: where sizes are remembered.
        is_due: whether a pod's last report calls for the action of a rule too.
        now: the wall clock.
    """

    client: KubernetesClient
    pods: Mapping[PodUid, WatchedPod]
    namespaces: Namespaces
    recorder: EventRecorder
    sizes: Sizes
    is_due: Callable[[WatchedPod, Rule], bool]
    now: Callable[[], datetime]


def actions(means: Means) -> Mapping[IdleAction, Act]:
    """Return what is done for each action."""
    return {
        IdleAction.EVICT: _Evict(means),
        IdleAction.SCALE_TO_ZERO: _ScaleToZero(means),
        IdleAction.CULL: _Cull(means),
    }


@dataclass(frozen=True, slots=True)
class _Evict:
    """Evicts the pod with its gang; their controllers, if any, create other pods."""

    means: Means

    async def __call__(self, due: IdlePod) -> str:
        with_gang = " with its gang, of which no pod has been used" if due.others else ""
        for pod in (due.pod, *due.others):
            try:
                await eviction.evict(self.means.client, pod)
            except KubernetesError as error:
                if error.status == HTTPStatus.TOO_MANY_REQUESTS:
                    return f"a PodDisruptionBudget does not allow an eviction of {pod.name} now: {error}"
                raise
            self.means.recorder.record(pod.reference, EVICTED, f"evicted{with_gang}: {due.why} ({due.rule})")
        return ""


@dataclass(frozen=True, slots=True)
class _ScaleToZero:
    """Scales the Deployment or StatefulSet to zero once all its pods are due; a Notebook is stopped."""

    means: Means

    async def __call__(self, due: IdlePod) -> str:
        owner = await owners.find(self.means.client, due.pod)
        if owner is None:
            return "no Deployment, StatefulSet or Notebook owns the pod; use vgpu.io/idle-action: evict"
        if refusal := _refusal(self.means, owner, due):
            return refusal
        return await (_stop(self.means, owner, due) if owner.kind == "Notebook" else _scale(self.means, owner, due))


@dataclass(frozen=True, slots=True)
class _Cull:
    """Stops the Kubeflow Notebook, as its own culling does."""

    means: Means

    async def __call__(self, due: IdlePod) -> str:
        owner = await owners.find(self.means.client, due.pod)
        if owner is None or owner.kind != "Notebook":
            return "no Notebook of Kubeflow owns the pod; use vgpu.io/idle-action: scale-to-zero or evict"
        return _refusal(self.means, owner, due) or await _stop(self.means, owner, due)


def _refusal(means: Means, owner: ScalableOwner, due: IdlePod) -> str:
    """Return why an owner must not be stopped: its template does not say so, or another pod of it is in use."""
    asked = idle.rule(owner.template, means.namespaces.setting(owner.namespace))
    if asked is None or asked.action is not due.rule.action:
        return (
            f"the pod template of {owner} does not ask for {due.rule.action}: set {names.IDLE_AFTER} and "
            f"{names.IDLE_ACTION} in spec.template.metadata.annotations, or on the namespace"
        )
    busy = [sibling.name for sibling in siblings(due.pod, means.pods.values()) if not means.is_due(sibling, due.rule)]
    return f"{owner} has pods that are not idle: {', '.join(sorted(busy)[:5])}" if busy else ""


def siblings(pod: WatchedPod, pods: Iterable[WatchedPod]) -> list[WatchedPod]:
    """Return the other pods of a pod's owner that have not ended."""
    owner = pod.lifecycle.owner
    return [
        other
        for other in pods
        if other.lifecycle.owner == owner
        and other.namespace == pod.namespace
        and other.uid != pod.uid
        and not other.is_terminal
    ]


class _ScaleSpec(msgspec.Struct):
    replicas: int = 0


class _ScaleMetadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")
    uid: str = ""


class _ScaleObject(msgspec.Struct):
    metadata: _ScaleMetadata
    spec: _ScaleSpec


_decode_scale = msgspec.json.Decoder(_ScaleObject).decode


async def _scale(means: Means, owner: ScalableOwner, due: IdlePod) -> str:
    """Scale an owner to zero. Raises KubernetesError, 409 where the owner was changed after this function read it."""
    path = f"{owner.path}/scale"
    found = _decode_scale(await means.client.get(path))
    replicas = found.spec.replicas
    if replicas < 1:
        return ""
    await means.sizes.remember(owner, replicas, int(means.now().timestamp() * 1000))
    named = {
        "name": owner.name,
        "namespace": owner.namespace,
        "uid": owner.uid,
        "resourceVersion": found.metadata.version,
    }
    await means.client.put(
        path, {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": named, "spec": {"replicas": 0}}
    )
    back = f"kubectl scale {owner.kind.lower()} {owner.name} -n {owner.namespace} --replicas={replicas}"
    text = f"scaled from {replicas} to 0: {due.why} ({due.rule}); back by: {back}"
    means.recorder.record(owner.reference, SCALED, text)
    means.recorder.record(due.pod.reference, SCALED, f"{owner} is {text}")
    return ""


async def _stop(means: Means, owner: ScalableOwner, due: IdlePod) -> str:
    """Stop a Notebook by its own annotation. The UID keeps a recreated Notebook of that name from being stopped."""
    if owner.is_stopped:
        return ""
    metadata = {"uid": owner.uid, "annotations": {STOPPED_BY: timestamps.seconds(means.now())}}
    await means.client.patch(owner.path, {"metadata": metadata})
    back = f"kubectl annotate notebook {owner.name} -n {owner.namespace} {STOPPED_BY}-"
    text = f"stopped: {due.why} ({due.rule}); back by the Notebook's start button, or: {back}"
    means.recorder.record(owner.reference, STOPPED, text)
    means.recorder.record(due.pod.reference, STOPPED, f"{owner} is {text}")
    return ""
