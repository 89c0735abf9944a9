"""The rules for pods: their defaults, how they are bound, and how they are deleted."""

import re
from datetime import datetime, timedelta
from typing import Any, Final

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import MAX_DIGITS
from vgpu.simulator.api.resources import PODS, Target

DEFAULT_GRACE_S: Final = 30
MAX_GRACE_S: Final = 1 << 31  # longer than a run; a time beyond the year 9999 cannot be written
TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_DEFAULTS: Final = {
    "schedulerName": "default-scheduler",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": DEFAULT_GRACE_S,
}
_INTEGER: Final = re.compile(rf"\d{{1,{MAX_DIGITS}}}", re.ASCII)
_SUFFIXES: Final = ("", "k", "M", "G", "T", "P")
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


def target(pod: JsonObject, subresource: str = "") -> Target:
    """Return the target of a pod, or of one of its subresources."""
    return Target(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], subresource)


def created(pod: JsonObject) -> JsonObject:
    """Return a new pod with defaults and its first status.

    Raises:
        KubernetesError: 422, no containers, or an extended resource that is no whole number.
    """
    return {**_defaulted(pod), "status": {"phase": "Pending"}}


def updated(new: JsonObject) -> JsonObject:
    """Return a pod's update with defaults. Raises KubernetesError as `created`."""
    return _defaulted(new)


def check_update(old: JsonObject, new: JsonObject) -> None:
    """Check an update after admission.

    Raises:
        KubernetesError: 422, the update changes the node, the scheduler or the containers, which no update may.
    """
    for path in ("nodeName", "schedulerName", "containers", "initContainers"):
        if _immutable(old, path) != _immutable(new, path):
            why = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,..."
            raise _invalid(old, why)


def bound(pod: JsonObject, binding: JsonObject, *, now: datetime) -> JsonObject:
    """Return the pod as a Binding leaves it: on its node, with the Binding's annotations and labels merged in.

    Raises:
        KubernetesError: 409, the pod is bound already or being deleted; 422, the Binding names no node.
    """
    node = (binding.get("target") or {}).get("name")
    if not node:
        raise KubernetesError(422, "Invalid", "Binding is invalid: target.name: Required value")
    metadata, more = pod["metadata"], binding.get("metadata") or {}
    if "deletionTimestamp" in metadata:
        raise _not_bindable(pod, f"pod {metadata['name']} is being deleted, cannot be assigned to a host")
    if pod["spec"].get("nodeName"):
        raise _not_bindable(pod, f'pod {metadata["name"]} is already assigned to node "{pod["spec"]["nodeName"]}"')
    merged = {key: {**(metadata.get(key) or {}), **(more.get(key) or {})} for key in ("annotations", "labels")}
    return {
        **pod,
        "metadata": {**metadata, **{key: values for key, values in merged.items() if values}},
        "spec": {**pod["spec"], "nodeName": node},
        "status": with_condition(pod.get("status") or {}, "PodScheduled", "True", now=now),
    }


def grace_s(pod: JsonObject, asked: int | None) -> int:
    """Return the grace period of a deletion in seconds; 0 where no kubelet must stop the pod."""
    if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in TERMINAL:
        return 0
    default = pod["spec"].get("terminationGracePeriodSeconds")
    grace: int = (DEFAULT_GRACE_S if default is None else default) if asked is None else asked
    return min(max(grace, 0), MAX_GRACE_S)


def deleting(pod: JsonObject, grace: int, *, now: datetime) -> JsonObject:
    """Return the pod as a graceful deletion marks it."""
    until = timestamps.seconds(now + timedelta(seconds=grace))
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": until, "deletionGracePeriodSeconds": grace}}


def with_phase(status: JsonObject) -> JsonObject:
    """Return a pod's status with a phase: a client may leave it out."""
    return {**status, "phase": status.get("phase") or "Pending"}


def with_condition(
    status: JsonObject, kind: str, value: str, *, now: datetime, reason: str = "", message: str = ""
) -> JsonObject:
    """Return a pod's status with one condition set; its transition time changes only with its value."""
    conditions = list(status.get("conditions") or [])
    old = next((c for c in conditions if c["type"] == kind), None)
    known = old.get("lastTransitionTime") if old and old["status"] == value else None
    since = known or timestamps.seconds(now)
    condition = {"type": kind, "status": value, "lastTransitionTime": since}
    condition |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
    return {**status, "conditions": [*(c for c in conditions if c["type"] != kind), condition]}


def canonical(amount: Any) -> str:
    """Write an integer quantity as the API server prints it: 18000 is `18k`; other forms are not changed."""
    text = str(amount)
    if not _INTEGER.fullmatch(text):
        return text
    number, suffix = int(text), 0
    while number and number % 1000 == 0 and suffix < len(_SUFFIXES) - 1:
        number, suffix = number // 1000, suffix + 1
    return f"{number}{_SUFFIXES[suffix]}"


def _defaulted(pod: JsonObject) -> JsonObject:
    """Return a pod with the defaults that the API server fills in before admission."""
    spec = dict(pod.get("spec") or {})
    if not spec.get("containers"):
        raise _invalid(pod, "spec.containers: Required value")
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_with_requests(pod, container) for container in spec[kind]]
    return {**pod, "spec": {**_DEFAULTS, **spec}}


def _with_requests(pod: JsonObject, container: JsonObject) -> JsonObject:
    """Fill requests from limits; refuse extended resources that are no whole numbers or differ between both."""
    resources = container.get("resources") or {}
    limits = {name: canonical(value) for name, value in (resources.get("limits") or {}).items()}
    requests = {name: canonical(value) for name, value in (resources.get("requests") or {}).items()}
    path = f"spec.containers[{container.get('name')}].resources"
    for name in (limits.keys() | requests.keys()) - _NATIVE:
        if "/" in name and limits.get(name) != requests.get(name, limits.get(name)):
            raise _invalid(pod, _unequal(path, name, limits, requests))
        if "/" in name and limits.get(name, "").endswith("m"):
            raise _invalid(pod, f"{path}.limits[{name}]: Invalid value: must be an integer")
    filled = {"limits": limits, "requests": {**limits, **requests}}
    return {**container, "resources": {key: amounts for key, amounts in filled.items() if amounts}}


def _unequal(path: str, name: str, limits: JsonObject, requests: JsonObject) -> str:
    """Say what the API server's ValidateContainerResourceRequirements says."""
    if name not in limits:
        return f"{path}.limits: Required value: Limit must be set for non overcommitable resources"
    return f'{path}.requests: Invalid value: "{requests[name]}": must be equal to {name} limit of {limits[name]}'


def _immutable(pod: JsonObject, path: str) -> Any:
    value = pod["spec"].get(path)
    return [{**container, "image": ""} for container in value] if isinstance(value, list) else value


def _invalid(pod: JsonObject, why: str) -> KubernetesError:
    return KubernetesError(422, "Invalid", f'Pod "{pod["metadata"]["name"]}" is invalid: {why}')


def _not_bindable(pod: JsonObject, why: str) -> KubernetesError:
    name = pod["metadata"]["name"]
    return KubernetesError(409, "Conflict", f'Operation cannot be fulfilled on {PODS.name}/binding "{name}": {why}')
