"""As much OpenAPI as kubectl asks for: that the server checks fields itself, and the words of custom resources.

`kubectl apply` looks for the parameter fieldValidation, and `kubectl explain` for the schema of a kind. The simulator
has no schemas of Kubernetes' own kinds, and ignores fields that it does not know.
https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api.resources import Resource

_GVK: Final = "x-kubernetes-group-version-kind"


def index(resources: Iterable[Resource]) -> JsonObject:
    """Return the answer to `/openapi/v3`: where the document of each group and version is."""
    paths = sorted({_prefix(resource.group, resource.version) for resource in resources})
    return {"paths": {path.lstrip("/"): {"serverRelativeURL": f"/openapi/v3{path}"} for path in paths}}


def document(group: str, version: str, resources: Iterable[Resource], crds: Mapping[str, JsonObject]) -> JsonObject:
    """Return the document of a group and version; `crds` are the definitions by the resource's name.

    Raises:
        KubernetesError: 404, there is no such group and version.
    """
    own = {
        resource.plural: resource for resource in resources if (resource.group, resource.version) == (group, version)
    }
    if not own:
        raise KubernetesError(404, "NotFound", "the server could not find the requested resource")
    paths: JsonObject = {}
    for resource in own.values():
        paths |= _paths(resource)
    schemas = {_schema_name(resource): _schema(resource, crds.get(resource.name)) for resource in own.values()}
    info = {"title": "vgpushare's simulator", "version": "1.36"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _paths(resource: Resource) -> JsonObject:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    within = "/namespaces/{namespace}" if resource.namespaced else ""
    every = f"{_prefix(resource.group, resource.version)}{within}/{resource.plural}"
    body = {"$ref": f"#/components/schemas/{_schema_name(resource)}"}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": body}}}}
    operation = {_GVK: kind, "responses": answer}
    checked = {**operation, "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]}
    return {
        every: {"get": operation, "post": checked},
        f"{every}/{{name}}": {"get": operation, "put": checked, "patch": checked, "delete": operation},
    }


def _schema(resource: Resource, crd: JsonObject | None) -> JsonObject:
    kinds = [{"group": resource.group, "version": resource.version, "kind": resource.kind}]
    known = (_defined(crd, resource.version) if crd else None) or {
        "description": "The simulator does not describe this kind; `kubectl explain` on a cluster does.",
        "type": "object",
    }
    return {**known, _GVK: kinds}


def _defined(crd: JsonObject, version: str) -> Any:
    versions = {entry["name"]: entry for entry in crd["spec"]["versions"]}
    return (versions.get(version, {}).get("schema") or {}).get("openAPIV3Schema")


def _schema_name(resource: Resource) -> str:
    return f"{resource.group or 'core'}.{resource.version}.{resource.kind}"


def _prefix(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
