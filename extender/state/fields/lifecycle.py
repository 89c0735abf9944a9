"""When a pod was created and bound, when its containers ran, and what created the pod, as its object says.

Times are Unix milliseconds; Kubernetes writes whole seconds. What cannot be read is missing: users write pods.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from extender.state.fields import api_times
from vgpu.domain.asks.request import MAX_CONTAINERS
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json

MAX_KIND: Final = 63
MAX_NAME: Final = 253
_NO_REASON: Final = "Waiting"  # where the kubelet gives none
_HASH_LABEL: Final = "pod-template-hash"
_STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses")


class Exit(msgspec.Struct, frozen=True, gc=False):
    """How a run of a container ended."""

    at_ms: int
    code: int
    reason: str


class ContainerRun(msgspec.Struct, frozen=True, gc=False):
    """The current run of a container, the `count`th after the first.

    `started_ms` is 0 where the container has not started; `exit` is how this run ended, `last_exit` the one before.
    `waiting` is the kubelet's word for why the container does not run, such as ImagePullBackOff; empty where it runs or
    has ended.
    """

    count: int
    started_ms: int
    exit: Exit | None = None
    last_exit: Exit | None = None
    waiting: str = ""


class Lifecycle(msgspec.Struct, frozen=True, gc=False):
    """A pod's times; 0 is unknown. `owner` is the controller's kind and name, both empty where there is none."""

    created_ms: int = 0
    scheduled_ms: int = 0
    owner: tuple[str, str] = ("", "")
    runs: Mapping[ContainerName, ContainerRun] | None = None


UNKNOWN: Final = Lifecycle()


def decode(pod: Json) -> Lifecycle:
    """Read a pod's decoded JSON."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    return Lifecycle(
        created_ms=api_times.milliseconds(metadata.get("creationTimestamp")),
        scheduled_ms=api_times.milliseconds(_scheduled(status.get("conditions") or ())),
        owner=_owner(metadata),
        runs=_runs(status) or None,
    )


def _scheduled(conditions: Iterable[Json]) -> object:
    for condition in conditions:
        if condition.get("type") == "PodScheduled":
            return condition.get("lastTransitionTime")
    return None


def _owner(metadata: Json) -> tuple[str, str]:
    """Return the pod's controller; a Deployment for the ReplicaSet of one, whose name ends with the pod's label."""
    for owner_reference in metadata.get("ownerReferences") or ():
        if owner_reference.get("controller"):
            kind, name = owner_reference.get("kind", ""), owner_reference.get("name", "")
            template = (metadata.get("labels") or {}).get(_HASH_LABEL, "")
            if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
                return "Deployment", _clean(name.removesuffix(f"-{template}"), MAX_NAME)
            return _clean(kind, MAX_KIND), _clean(name, MAX_NAME)
    return "", ""


def _clean(text: str, length: int) -> str:
    """Return what a database stores of a text: users write owner references, of any length."""
    return "".join(character for character in text[:length] if character.isprintable())


class _Running(msgspec.Struct):
    startedAt: str | None = None  # noqa: N815 - Kubernetes' name


class _Terminated(msgspec.Struct):
    startedAt: str | None = None  # noqa: N815 - Kubernetes' name
    finishedAt: str | None = None  # noqa: N815 - Kubernetes' name
    exitCode: int = 0  # noqa: N815 - Kubernetes' name
    reason: str = ""


class _Waiting(msgspec.Struct):
    reason: str = ""


class _PodState(msgspec.Struct):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _PodStatus(msgspec.Struct):
    name: ContainerName
    restartCount: int = 0  # noqa: N815 - Kubernetes' name
    state: _PodState | None = None
    lastState: _PodState | None = None  # noqa: N815 - Kubernetes' name


_decode_status: Final = msgspec.json.Decoder(_PodStatus).decode


def _runs(status: Json) -> dict[ContainerName, ContainerRun]:
    found: dict[ContainerName, ContainerRun] = {}
    for key in _STATUS_LISTS:
        for raw in (status.get(key) or ())[:MAX_CONTAINERS]:
            try:
                read = _decode_status(raw)
            except msgspec.MsgspecError:
                continue
            found[read.name] = _run(read)
    return found


def _run(found: _PodStatus) -> ContainerRun:
    state, last = found.state, found.lastState
    begun = (state.running or state.terminated) if state else None
    started_ms = api_times.milliseconds(begun.startedAt) if begun else 0
    return ContainerRun(found.restartCount, started_ms, _exit(state), _exit(last), _waiting(state))


def _waiting(state: _PodState | None) -> str:
    """Return why a container waits. A container without a state has not been looked at by the kubelet yet."""
    if state is None or not (state.waiting or state.running or state.terminated):
        return _NO_REASON
    return (_clean(state.waiting.reason, MAX_KIND) or _NO_REASON) if state.waiting else ""


def _exit(state: _PodState | None) -> Exit | None:
    ended = state.terminated if state else None
    at_ms = api_times.milliseconds(ended.finishedAt) if ended else 0
    return Exit(at_ms, ended.exitCode, ended.reason) if ended and at_ms > 0 else None
