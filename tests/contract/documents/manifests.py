"""Whether a documented manifest, or a part of one, is one that the webhook admits and that names only what exists.

tests/e2e/install/test_documents.py lets a real API server judge the complete ones.
"""

from collections.abc import Iterator
from functools import cache
from posixpath import normpath
from typing import Any

import jsonschema_rs
import yaml

from release import publish
from tests.contract.repository import ROOT
from tests.manifests.objects import all_objects, names_of_images, names_of_objects
from tests.webhook.builders import container, pod, rules
from vgpu.domain import names, pod_warnings
from webhook import mutate, validate

Json = dict[str, Any]

KNOWN = {
    *names.USER_RESOURCES,
    *names.KUBELET_RESOURCES,
    *names.USER_ANNOTATIONS,
    *names.LIVE_ANNOTATIONS,
    names.MAX_PRIORITY_LABEL,
    names.VISIBLE_DEVICES_LABEL,
    names.SYNTHETIC,
}

WRITTEN = {"../../../dist/images", f"../../{publish.PINNED}"}  # components that a build, or a release, writes


def documents(text: str) -> list[Json]:
    """The objects in a text of YAML or JSON. Raises yaml.YAMLError."""
    return [document for document in yaml.safe_load_all(text) if document]


def is_complete(document: Json) -> bool:
    """Whether an API server can judge the object: a file, such as kube-scheduler's configuration, has no metadata."""
    return document.keys() >= {"apiVersion", "kind", "metadata"}


def problems(document: Json) -> list[str]:
    """What is wrong with an object, or with a part: `metadata` and `spec` of a pod, `resources` of a container."""
    if document.get("kind") == "Kustomization" or "patches" in document:
        return list(_of_kustomization(document))
    found = [f"{name} is not known" for name in _names(document) if name not in KNOWN]
    if document.get("kind") == "GPUNode":
        found += _of_gpunode(document)
    return found + [problem for pod in pods(document) for problem in _of_pod(pod)]


def pods(document: Json) -> Iterator[Json]:
    """The pod that an object is, or makes; a part of a pod is completed."""
    template = document.get("spec", {}).get("template")
    if template is not None:
        yield _completed(template)
    elif "resources" in document:
        yield _completed({"spec": {"containers": [container(**document)]}})
    elif document.get("kind", "Pod") == "Pod":
        yield _completed(document)


def _completed(part: Json) -> Json:
    whole = pod({names.GPU_MEM: 1024, names.GPU_CORES: 10})
    return {key: {**whole[key], **part.get(key, {})} for key in whole}


def _of_pod(written: Json) -> list[str]:
    admitted = mutate.mutate(written, rules()).pod
    return [str(said) for said in (*validate.on_create(admitted, rules()), *pod_warnings.warnings(admitted))]


def _names(value: Any) -> Iterator[str]:
    """Names of ours that are used as keys: resources, also those of quotas, annotations and labels."""
    if isinstance(value, list):
        yield from (name for item in value for name in _names(item))
    if isinstance(value, dict):
        keys = (str(key).removeprefix("requests.") for key in value)
        yield from (key for key in keys if key.startswith(f"{names.DOMAIN}/"))
        yield from (name for item in value.values() for name in _names(item))


def _of_kustomization(document: Json) -> Iterator[str]:
    named = [*document.get("resources", ()), *(path for path in document.get("components", ()) if path not in WRITTEN)]
    folders = [normpath(f"manifests/overlays/OVERLAY/{path}") for path in named]
    yield from (f"there is no {folder}" for folder in folders if not (ROOT / folder).exists())
    images = {image["name"] for image in document.get("images", ())}
    yield from (f"no manifest has the image {image}" for image in sorted(images - names_of_images()))
    named_targets = [patch["target"] for patch in document.get("patches", ()) if "name" in patch.get("target", ())]
    targets = {target["name"] for target in named_targets}
    yield from (f"no manifest has an object {target}" for target in sorted(targets - names_of_objects()))


def _of_gpunode(document: Json) -> list[str]:
    return [iter_error.message for iter_error in _gpunode_spec().iter_errors(document["spec"])]


@cache
def _gpunode_spec() -> Any:
    """What reads the `spec` of a GPUNode, and refuses fields that the schema does not name."""
    (crd,) = (all_object_ for all_object_ in all_objects() if all_object_["kind"] == "CustomResourceDefinition")
    (version,) = crd["spec"]["versions"]
    return jsonschema_rs.validator_for(_closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"]))


def _closed(schema: Json) -> Json:
    changed = dict(schema)
    if "properties" in schema:
        changed["properties"] = {name: _closed(prop) for name, prop in schema["properties"].items()}
        changed["additionalProperties"] = False
    if "items" in schema:
        changed["items"] = _closed(schema["items"])
    return changed
