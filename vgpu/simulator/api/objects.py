"""What the API server does with an object that a client sends: metadata, defaults, and which fields a write changes."""

from datetime import datetime
from typing import Final

from vgpu.adapters.kubernetes import timestamps
from vgpu.domain import object_names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import pods, shapes
from vgpu.simulator.api.resources import NAMESPACES, PODS, Resource

_KEPT: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "name")


def created(resource: Resource, namespace: str, body: JsonObject, *, uid: str, now: datetime) -> JsonObject:
    """Return the object as a create stores it: with name, metadata and defaults, and in general without a status.

    Raises:
        KubernetesError: 400, a field has a wrong type; 422, a real API server would refuse the object too.
    """
    shapes.check(resource, body)
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if value is not None}
    metadata["name"] = metadata.get("name") or _generated(resource, metadata, uid)
    _check_name(resource, metadata["name"])
    if resource.namespaced:
        _check_namespace(metadata, namespace)
        metadata["namespace"] = namespace
    metadata |= {"uid": uid, "creationTimestamp": timestamps.seconds(now), "generation": 1}
    metadata.pop("resourceVersion", None)
    obj = {**body, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    if resource.status and (resource.is_custom or resource is PODS):
        obj.pop("status", None)
    return pods.created(obj) if resource is PODS else obj


def updated(resource: Resource, old: JsonObject, new: JsonObject, *, subresource: str = "") -> JsonObject:
    """Return the object of an update, for admission: an update of the status changes the status only, and the reverse.

    Raises:
        KubernetesError: 400, a field has a wrong type; 409, the update is of another version or UID; 422, it has no
            version.
    """
    shapes.check(resource, new)
    _check_preconditions(resource, old["metadata"], new.get("metadata") or {})
    if subresource == "status":
        status = new.get("status") or {}
        return {**old, "status": pods.with_phase(status) if resource is PODS else status}
    metadata = dict(new.get("metadata") or {})
    for key in _KEPT:
        metadata.pop(key, None)
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
    if resource.namespaced:
        metadata["namespace"] = old["metadata"]["namespace"]
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    obj = {**new, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    if resource.status:
        obj.pop("status", None)
        obj |= {"status": old["status"]} if "status" in old else {}
    return pods.updated(obj) if resource is PODS else obj


def admitted(resource: Resource, old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the object as an update stores it, after admission has changed it.

    Raises:
        KubernetesError: 422, the update changes what no update may.
    """
    if resource is PODS:
        pods.check_update(old, new)
    return _with_generation(old, new)


def invalid(resource: Resource, name: str, why: str) -> KubernetesError:
    """Return the error for an invalid object."""
    return KubernetesError(422, "Invalid", f'{resource.kind} "{name}" is invalid: {why}')


def conflict(resource: Resource, name: str, why: str) -> KubernetesError:
    """Return the error for a write that conflicts with an earlier one."""
    return KubernetesError(409, "Conflict", f'Operation cannot be fulfilled on {resource.name} "{name}": {why}')


def check_uid(resource: Resource, metadata: JsonObject, wanted: str | None) -> None:
    """Refuse a write that is meant for another object of this name.

    Raises:
        KubernetesError: 409.
    """
    if wanted and wanted != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {metadata['uid']}"
        raise conflict(resource, metadata["name"], why)


def _check_preconditions(resource: Resource, old: JsonObject, new: JsonObject) -> None:
    check_uid(resource, old, new.get("uid"))
    if new.get("name", old["name"]) != old["name"]:
        raise KubernetesError(400, "BadRequest", "the name of the object does not match the name on the URL")
    version = new.get("resourceVersion")
    if not version and resource.is_custom:
        why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        raise invalid(resource, old["name"], why)
    if version and version != old["resourceVersion"]:
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(resource, old["name"], why)


def _with_generation(old: JsonObject, new: JsonObject) -> JsonObject:
    if _content(old) == _content(new):
        return new
    generation = old["metadata"].get("generation", 0) + 1
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def _content(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}


def _generated(resource: Resource, metadata: JsonObject, uid: str) -> str:
    prefix = metadata.get("generateName")
    if not prefix:
        raise invalid(resource, "", "metadata.name: Required value: name or generateName is required")
    return f"{prefix}{uid.replace('-', '')[:10]}"


def _check_name(resource: Resource, name: str) -> None:
    """Check what Kubernetes checks, but for Services, whose names may have dots here."""
    is_namespace = resource is NAMESPACES
    if not (object_names.is_label(name) if is_namespace else object_names.is_subdomain(name)):
        rule = "label" if is_namespace else "subdomain"
        raise invalid(resource, name, f"metadata.name: must be a lowercase RFC 1123 {rule}")


def _check_namespace(metadata: JsonObject, namespace: str) -> None:
    if metadata.get("namespace", namespace) != namespace:
        raise KubernetesError(400, "BadRequest", "the namespace of the object does not match the namespace on the URL")
