"""The part of a pod's JSON that vgpushare reads, as plain dictionaries.

The decoder skips every other field without building objects: `metadata.managedFields` of 1.5 MB takes 8 ms instead of
0.4 s. A field of a wrong type raises `msgspec.ValidationError`.
"""

from typing import TypedDict

import msgspec

from vgpu.domain.identifiers import Namespace, NodeName, PodUid


class Resources(TypedDict, total=False):
    """A container's `resources`."""

    limits: dict[str, str | int] | None
    requests: dict[str, str | int] | None


class Variable(TypedDict, total=False):
    """An environment variable; `value` is missing where it comes from elsewhere."""

    name: str
    value: str | None


class VolumeMount(TypedDict, total=False):
    """A volume mounted into a container."""

    name: str
    mountPath: str


class PlacedContainer(TypedDict, total=False):
    """What a container of any kind asks for."""

    name: str
    resources: Resources | None
    restartPolicy: str | None


class ContainerJson(PlacedContainer, total=False):
    """A container of any kind, with what it is started with."""

    env: list[Variable] | None
    volumeMounts: list[VolumeMount] | None


class SchedulingGate(TypedDict, total=False):
    """An entry of a pod's `spec.schedulingGates`."""

    name: str


class SchedulingGroup(TypedDict, total=False):
    """A pod's `spec.schedulingGroup`."""

    podGroupName: str | None


class _Placing(TypedDict, total=False):
    nodeName: NodeName | None
    priority: int | None
    preemptionPolicy: str | None
    overhead: dict[str, str | int] | None
    schedulingGroup: SchedulingGroup | None
    schedulingGates: list[SchedulingGate] | None


class PlacedSpec(_Placing, total=False):
    """The part of a pod's `spec` that says where the pod can be; what is raw is read for explanations only."""

    nodeSelector: msgspec.Raw
    affinity: msgspec.Raw
    tolerations: msgspec.Raw
    containers: list[PlacedContainer] | None
    initContainers: list[PlacedContainer] | None


class SpecJson(_Placing, total=False):
    """A pod's `spec`."""

    containers: list[ContainerJson] | None
    initContainers: list[ContainerJson] | None
    ephemeralContainers: list[ContainerJson] | None
    schedulerName: str | None
    priorityClassName: str | None


class OwnerJson(TypedDict, total=False):
    """An owner reference."""

    controller: bool | None
    apiVersion: str
    kind: str
    name: str
    uid: str


class Metadata(TypedDict, total=False):
    """A pod's `metadata`, without `managedFields`."""

    name: str
    namespace: Namespace
    uid: PodUid
    resourceVersion: str
    creationTimestamp: str | None
    annotations: dict[str, str] | None
    labels: dict[str, str] | None
    deletionTimestamp: str | None
    ownerReferences: list[OwnerJson] | None


class ConditionJson(TypedDict, total=False):
    """An entry of `status.conditions`."""

    type: str
    status: str | None
    reason: str | None
    message: str | None
    lastTransitionTime: str | None


class StatusJson(TypedDict, total=False):
    """A pod's `status`."""

    phase: str
    startTime: str | None
    nominatedNodeName: str | None
    conditions: list[ConditionJson] | None
    containerStatuses: list[msgspec.Raw] | None
    initContainerStatuses: list[msgspec.Raw] | None
    ephemeralContainerStatuses: list[msgspec.Raw] | None


class PodJson(TypedDict, total=False):
    """A pod."""

    metadata: Metadata
    spec: SpecJson
    status: StatusJson


class PlacedPod(TypedDict, total=False):
    """A pod without what its containers are started with: variables and mounts are most of many pods."""

    metadata: Metadata
    spec: PlacedSpec
    status: StatusJson


class _Identity(TypedDict, total=False):
    uid: PodUid
    resourceVersion: str
    namespace: Namespace
    name: str


class _Place(TypedDict, total=False):
    nodeName: NodeName | None


class _Phase(TypedDict, total=False):
    phase: str | None


class UnreadablePod(TypedDict, total=False):
    """What is read of a pod in which another field cannot be read."""

    metadata: _Identity
    spec: _Place
    status: _Phase


class HostContainer(TypedDict, total=False):
    """What a container requests of its node's CPU and memory."""

    resources: Resources | None
    restartPolicy: str | None


class HostSpec(TypedDict, total=False):
    """What a pod requests of its node's CPU and memory, and which node that is."""

    containers: list[HostContainer] | None
    initContainers: list[HostContainer] | None
    overhead: dict[str, str | int] | None
    nodeName: NodeName | None


class HostPodJson(TypedDict, total=False):
    """What is read of a pod that has nothing to do with GPUs."""

    metadata: _Identity
    spec: HostSpec
    status: _Phase


decode = msgspec.json.Decoder(PodJson).decode
decode_placed = msgspec.json.Decoder(PlacedPod).decode
decode_host = msgspec.json.Decoder(HostPodJson).decode
decode_unreadable = msgspec.json.Decoder(UnreadablePod).decode
