"""The types of the fields that the simulator reads, which the API server checks before it stores an object.

A client that writes another type is refused, as a real API server refuses it: nothing behind the API need expect it.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.resources import CRDS, EVENTS, LEASES, MUTATING, NODES, PODS, VALIDATING, Resource

MAX_DEPTH: Final = (
    200  # levels of JSON; a real API server takes 10,000, and no object that is of use has a tenth of ours
)

Amounts = dict[str, str | int | float] | None


class _OwnerShape(msgspec.Struct):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _MetadataShape(msgspec.Struct):
    name: str | None = None
    generateName: str | None = None  # noqa: N815 - the API's name, as all below
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[_OwnerShape] | None = None  # noqa: N815


class _ResourcesShape(msgspec.Struct):
    limits: Amounts = None
    requests: Amounts = None


class _ContainerShape(msgspec.Struct):
    name: str
    image: str | None = None
    restartPolicy: str | None = None  # noqa: N815
    resources: _ResourcesShape | None = None
    env: list[dict[str, Any]] | None = None
    volumeMounts: list[dict[str, Any]] | None = None  # noqa: N815


class _ConditionShape(msgspec.Struct):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    lastTransitionTime: datetime | None = None  # noqa: N815


class _PodSpecShape(msgspec.Struct):
    containers: list[_ContainerShape] | None = None
    initContainers: list[_ContainerShape] | None = None  # noqa: N815
    nodeName: str | None = None  # noqa: N815
    schedulerName: str | None = None  # noqa: N815
    priority: int | None = None
    preemptionPolicy: str | None = None  # noqa: N815
    terminationGracePeriodSeconds: int | None = None  # noqa: N815
    overhead: Amounts = None
    nodeSelector: dict[str, str] | None = None  # noqa: N815
    tolerations: list[dict[str, Any]] | None = None
    schedulingGates: list[dict[str, Any]] | None = None  # noqa: N815


class _PodStatusShape(msgspec.Struct):
    phase: str | None = None
    message: str | None = None
    startTime: datetime | None = None  # noqa: N815
    conditions: list[_ConditionShape] | None = None
    containerStatuses: list[dict[str, Any]] | None = None  # noqa: N815


class _NodeSpecShape(msgspec.Struct):
    unschedulable: bool | None = None
    taints: list[dict[str, Any]] | None = None


class _NodeStatusShape(msgspec.Struct):
    capacity: Amounts = None
    allocatable: Amounts = None
    conditions: list[_ConditionShape] | None = None


class _ObjectShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class _PlainShape(msgspec.Struct):
    metadata: _MetadataShape | None = None


class _PodShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    spec: _PodSpecShape | None = None
    status: _PodStatusShape | None = None


class _NodeShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    spec: _NodeSpecShape | None = None
    status: _NodeStatusShape | None = None


class _ReferenceShape(msgspec.Struct):
    uid: str | None = None


class _SourceShape(msgspec.Struct):
    component: str | None = None


class _EventShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    involvedObject: _ReferenceShape | None = None  # noqa: N815
    source: _SourceShape | None = None
    message: str | None = None


class _VersionShape(msgspec.Struct):
    name: str
    served: bool = True
    subresources: dict[str, Any] | None = None


class _NamesShape(msgspec.Struct):
    plural: str
    kind: str


class _CrdSpecShape(msgspec.Struct):
    group: str
    names: _NamesShape
    versions: list[_VersionShape]
    scope: str | None = None


class _CrdShape(msgspec.Struct):
    spec: _CrdSpecShape
    metadata: _MetadataShape | None = None


class _RuleShape(msgspec.Struct):
    operations: list[str]
    apiGroups: list[str]  # noqa: N815
    apiVersions: list[str]  # noqa: N815
    resources: list[str]


class _ClientConfigShape(msgspec.Struct):
    url: str | None = None
    caBundle: str | None = None  # noqa: N815


class _SelectorShape(msgspec.Struct):
    matchLabels: dict[str, str] | None = None  # noqa: N815
    matchExpressions: "list[_SelectorExpressionShape] | None" = None  # noqa: N815


class _SelectorExpressionShape(msgspec.Struct):
    key: str
    operator: str
    values: list[str] | None = None


class _HookShape(msgspec.Struct):
    name: str
    clientConfig: _ClientConfigShape  # noqa: N815
    rules: list[_RuleShape] | None = None
    timeoutSeconds: int | None = None  # noqa: N815
    namespaceSelector: _SelectorShape | None = None  # noqa: N815
    objectSelector: _SelectorShape | None = None  # noqa: N815


class _HooksShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    webhooks: list[_HookShape] | None = None


class _TargetShape(msgspec.Struct):
    name: str | None = None


class _BindingShape(msgspec.Struct):
    metadata: _MetadataShape | None = None
    target: _TargetShape | None = None


class _PreconditionsShape(msgspec.Struct):
    uid: str | None = None


class _DeletionShape(msgspec.Struct):
    gracePeriodSeconds: int | None = None  # noqa: N815
    preconditions: _PreconditionsShape | None = None


class _ScaleSpecShape(msgspec.Struct):
    replicas: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class _ScaleShape(msgspec.Struct):
    spec: _ScaleSpecShape
    metadata: _MetadataShape | None = None


_SHAPES: Final[dict[str, type[msgspec.Struct]]] = {
    PODS.name: _PodShape,
    NODES.name: _NodeShape,
    EVENTS.name: _EventShape,
    CRDS.name: _CrdShape,
    MUTATING.name: _HooksShape,
    VALIDATING.name: _HooksShape,
    LEASES.name: _ObjectShape,
}


def check(resource: Resource, obj: object) -> None:
    """Refuse an object in which a field has another type than the API's.

    Raises:
        KubernetesError: 400.
    """
    is_structured = resource.is_custom or resource.group == "apps"
    shape = _SHAPES.get(resource.name, _ObjectShape if is_structured else _PlainShape)
    _check(obj, shape, f"{resource.kind} in version {resource.api_version}")


def check_binding(binding: object) -> None:
    """Refuse a Binding with a field of a wrong type. Raises KubernetesError: 400."""
    _check(binding, _BindingShape, "Binding")


def check_deletion(options: object) -> None:
    """Refuse options of a deletion with a field of a wrong type. Raises KubernetesError: 400."""
    _check(options, _DeletionShape, "DeleteOptions")


def check_scale(scale: object) -> None:
    """Refuse a Scale with a field of a wrong type. Raises KubernetesError: 400."""
    _check(scale, _ScaleShape, "Scale")


def _check(obj: object, shape: type[msgspec.Struct], what: str) -> None:
    check_depth(obj)
    try:
        msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        raise _bad(f"{what} cannot be handled: {error}") from None


def check_depth(value: object) -> None:
    """Refuse JSON that is nested too deep. No recursion: the value may be as deep as a parser takes it.

    Raises:
        KubernetesError: 400.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    raise _bad(f"the object is nested deeper than {MAX_DEPTH} levels")


def object_of(value: object) -> JsonObject:
    """Return a JSON object; refuse any other JSON.

    Raises:
        KubernetesError: 400.
    """
    if not isinstance(value, dict):
        raise _bad(f"the body of the request must be an object, not {type(value).__name__}")
    return value


def _inner(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _bad(why: str) -> KubernetesError:
    return KubernetesError(400, "BadRequest", why)
