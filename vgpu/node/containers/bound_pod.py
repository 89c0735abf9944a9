"""A pod that is bound to this node, as its JSON says: what it asks for, and how far it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from vgpu.adapters.kubernetes import pod_json
from vgpu.domain import names, quantity
from vgpu.domain.asks import job_identity, space
from vgpu.domain.asks import request as requests
from vgpu.domain.asks.request import ContainerKind, Parsed
from vgpu.domain.asks.space import SpaceOptions
from vgpu.domain.formats import container_paths
from vgpu.domain.identifiers import (
    NO_CONTAINER,
    NO_NODE,
    NOT_IN_A_POD,
    ContainerName,
    KubeletPodUid,
    Namespace,
    NodeName,
    PodUid,
)
from vgpu.domain.problem import Problem

_MIRROR = "kubernetes.io/config.mirror"  # marks the API object of a static pod
_TERMINAL = frozenset({"Succeeded", "Failed"})

_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")

_NO_REQUEST = Parsed(None)
_MAX_WARNING = 1000  # characters

PodKey = tuple[Namespace, str]  # namespace, name


class _ContainerStatus(msgspec.Struct):
    name: ContainerName = NO_CONTAINER
    container_id: str | None = msgspec.field(default=None, name="containerID")


class _Exit(msgspec.Struct):
    exit_code: int = msgspec.field(default=-1, name="exitCode")


class _State(msgspec.Struct):
    terminated: _Exit | None = None


class _Completion(msgspec.Struct):
    name: ContainerName = NO_CONTAINER
    state: _State | None = None


_completion = msgspec.json.Decoder(_Completion).decode
_container_status = msgspec.json.Decoder(_ContainerStatus).decode


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A container's request as the kubelet sees it: an amount of IDs of one resource."""

    container: ContainerName
    kind: ContainerKind
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod of this node.

    Attributes:
        uid: the pod's identity; a recreated pod has the same name and another UID.
        namespace: of the pod.
        name: of the pod.
        node: the node that the pod is bound to, or empty.
        device_requests: in the order in which the kubelet allocates.
        parsed: what the pod asks for, with the problems.
        assignment: the annotation's text, empty where there is none.
        is_admitted: whether the kubelet has admitted the pod (`status.startTime`).
        is_terminal: whether the pod has ended and holds nothing.
        is_mirror: whether the pod is static, so that it was not scheduled.
        has_controller: whether a controller would create another pod in its place.
        covered: container and path of each volume that is mounted over one of vgpushare's files.
        containers: the runtime's ID and the name of each container that the status shows, of every kind.
        completed: the names of the init containers that have ended with exit code 0, sidecars among them.
        is_synthetic: whether the pod's kernels are a load for tests, and no use.
        idle_warning: what the extender has warned of, because the pod uses none of its cards; empty for nothing.
        kubelet_uid: the UID that the kubelet uses in cgroups: of a static pod, another one than the API's.
        space: the pod's group in space and its cap, None under another policy.
        job: names the pod's job in files, None where it is of none; members of groups in space are of none.
        order: in which the pods first came into the watch.
    """

    uid: PodUid
    namespace: Namespace
    name: str
    node: NodeName = NO_NODE
    device_requests: tuple[DeviceRequest, ...] = ()
    parsed: Parsed = _NO_REQUEST
    assignment: str = ""
    is_admitted: bool = False
    is_terminal: bool = False
    is_mirror: bool = False
    has_controller: bool = False
    covered: tuple[tuple[str, str], ...] = ()
    containers: tuple[tuple[str, ContainerName], ...] = ()
    completed: frozenset[ContainerName] = frozenset()
    kubelet_uid: KubeletPodUid = NOT_IN_A_POD
    is_synthetic: bool = False
    idle_warning: str = ""
    space: SpaceOptions | None = None
    job: bytes | None = None
    order: int = 0

    @property
    def key(self) -> PodKey:
        """Namespace and name, which is what pod-resources names pods by."""
        return self.namespace, self.name


def api_uid(kubelet_uid: KubeletPodUid, pod: BoundPod | None) -> PodUid:
    """Return the API server's UID of a pod that the kubelet knows by `kubelet_uid`.

    `pod` is None where the watch does not show the pod. It is taken for a scheduled one, which has one UID.
    """
    return PodUid(kubelet_uid) if pod is None else pod.uid


def kubelet_uid_of_scheduled(uid: PodUid) -> KubeletPodUid:
    """Return the kubelet's UID of a pod that was scheduled: the API server's. Static pods are not scheduled."""
    return KubeletPodUid(uid)


def decode(data: bytes) -> BoundPod:
    """Read a pod's JSON; a pod in which a field has a wrong type gets no limits and is refused at its start."""
    try:
        return _bound(pod_json.decode(data))
    except msgspec.ValidationError as error:
        problem = Problem("pod", "", f"cannot be read: {error}")
        return replace(_bound({**pod_json.decode_unreadable(data)}), parsed=Parsed(None, (problem,)))


def _bound(pod: Mapping[str, Any]) -> BoundPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    member = space.parse(metadata["namespace"], annotations)[0]
    return BoundPod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        node=pod.get("spec", {}).get("nodeName") or NO_NODE,
        device_requests=tuple(_device_requests(pod)),
        parsed=requests.parse(pod),
        assignment=annotations.get(names.ASSIGNMENT, ""),
        is_admitted=bool(status.get("startTime")),
        is_terminal=status.get("phase") in _TERMINAL,
        is_mirror=_MIRROR in annotations,
        has_controller=any(owner.get("controller") for owner in metadata.get("ownerReferences") or ()),
        covered=tuple(_covered(pod)),
        containers=tuple(_containers(status)),
        completed=frozenset(_completed(status)),
        kubelet_uid=KubeletPodUid(annotations.get(_MIRROR) or metadata["uid"]),
        is_synthetic=(metadata.get("labels") or {}).get(names.SYNTHETIC) == "true",
        idle_warning=_idle_warning(status),
        space=member,
        job=_job(metadata) if member is None else None,
    )


def _job(metadata: Mapping[str, Any]) -> bytes | None:
    placed = (metadata.get("annotations") or {}).get(names.PLACED_GANG, "")
    owners = metadata.get("ownerReferences") or ()
    controller = next((owner.get("uid") or "" for owner in owners if owner.get("controller")), "")
    return job_identity.fingerprint(metadata["namespace"], placed, controller)


def _idle_warning(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == names.IDLE_CONDITION and condition.get("status") == "True":
            return (condition.get("message") or "")[:_MAX_WARNING]
    return ""


def _containers(status: Mapping[str, Any]) -> Iterator[tuple[str, ContainerName]]:
    """Yield ID and name of each container that has been created; the ID is without the runtime's name before it."""
    for kind in _STATUSES:
        for raw in status.get(kind) or ():
            try:
                container = _container_status(raw)
            except msgspec.ValidationError:
                continue
            if container.container_id:
                yield container.container_id.rpartition("/")[2], container.name


def _completed(status: Mapping[str, Any]) -> Iterator[ContainerName]:
    for raw in status.get("initContainerStatuses") or ():
        try:
            container = _completion(raw)
        except msgspec.ValidationError:
            continue
        if container.state and container.state.terminated and not container.state.terminated.exit_code:
            yield container.name


def _covered(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for _, _, container in requests.containers_of(pod):
        for mount in container.get("volumeMounts") or ():
            if container_paths.is_reserved(mount.get("mountPath") or ""):
                yield str(container.get("name")), mount["mountPath"]


def _device_requests(pod: Mapping[str, Any]) -> Iterator[DeviceRequest]:
    for _, kind, container in requests.containers_of(pod):
        asked = requests.amounts(container)
        for resource in names.KUBELET_RESOURCES:
            amount = quantity.whole_number(asked.get(resource, "0"))
            if amount:
                yield DeviceRequest(container["name"], kind, resource, amount)
