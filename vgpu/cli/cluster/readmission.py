"""Pods that were created while the webhook did not answer: which they are, and how they are created again.

They ask for GPUs and have nothing that the webhook adds, so no scheduler finds a node. Admission happens at creation
only. A pod with a controller is deleted, because its controller creates another. A pod without a controller is created
again from its own manifest. Before that, the API server says by a dry run whether the webhook admits the manifest.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from vgpu.cli.failure import ANSWER_IS_NO, CommandFailed
from vgpu.domain import names
from vgpu.domain.asks import aliases

Pod = dict[str, Any]

_PAGE: Final = 500
_ASKED: Final = frozenset(names.USER_RESOURCES) | aliases.MARKER_NAMES
_ADDED: Final = frozenset(names.KUBELET_RESOURCES)
_SERVERS: Final = (  # fields that the API server fills in
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)


class ReadmissionApi(Protocol):
    """The API server, with the caller's own rights. Every method raises CommandFailed."""

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Any:
        """GET an object or a list."""

    def post(self, path: str, body: Any = None, query: Mapping[str, str | int] | None = None) -> Any:
        """POST an object."""

    def delete(self, path: str, body: Any = None) -> Any:
        """DELETE an object."""


def waiting(api: ReadmissionApi, namespace: str | None) -> list[Pod]:
    """Return the pods of a namespace, or of all, that wait because the webhook has not admitted them."""
    return [pod for pod in _pods(api, namespace) if is_unadmitted(pod)]


def _pods(api: ReadmissionApi, namespace: str | None) -> Iterator[Pod]:
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
    query: dict[str, str | int] = {"limit": _PAGE, "fieldSelector": "spec.nodeName=,status.phase=Pending"}
    while True:
        page = api.get(path, query)
        yield from page["items"]
        following = page["metadata"].get("continue")
        if not following:
            return
        query = {**query, "continue": following}


def is_unadmitted(pod: Pod) -> bool:
    """Whether a pod asks for GPUs, is on no node, and has none of the resources that the webhook adds."""
    spec = pod["spec"]
    resources = _resources(spec)
    is_waiting = not spec.get("nodeName") and not pod["metadata"].get("deletionTimestamp")
    return is_waiting and bool(resources & _ASKED) and not resources & _ADDED


def _resources(spec: Mapping[str, Any]) -> set[str]:
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    resources = (container.get("resources") or {} for container in containers)
    return {name for resource in resources for kind in ("limits", "requests") for name in resource.get(kind) or ()}


def controller(pod: Pod) -> str:
    """Return the pod's controller as KIND/NAME, empty where the pod has none."""
    owners = (
        owner_reference
        for owner_reference in pod["metadata"].get("ownerReferences") or ()
        if owner_reference.get("controller")
    )
    return next((f"{owner['kind']}/{owner['name']}" for owner in owners), "")


def manifest(pod: Pod) -> Pod:
    """Return what to create the pod from again: without what the API server and the kubelet wrote."""
    fresh = copy.deepcopy(pod)
    fresh.pop("status", None)
    for field in _SERVERS:
        fresh["metadata"].pop(field, None)
    return {"apiVersion": "v1", "kind": "Pod", **fresh}


def readmit(api: ReadmissionApi, pod: Pod) -> str:
    """Create a pod again, or have its controller do so; return what was done, for people.

    Raises CommandFailed, with the pod unchanged where the webhook does not answer or refuses it.
    """
    metadata, fresh = pod["metadata"], manifest(pod)
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
    _check(api, path, fresh)
    api.delete(f"{path}/{metadata['name']}", {"preconditions": {"uid": metadata["uid"]}})
    owner = controller(pod)
    if owner:
        return f"deleted; {owner} creates another"
    api.post(path, fresh)
    return "created again"


def _check(api: ReadmissionApi, path: str, fresh: Pod) -> None:
    """Ask by a dry run whether the webhook admits the manifest, under another name: the pod's own is taken."""
    metadata = {key: value for key, value in fresh["metadata"].items() if key not in ("name", "ownerReferences")}
    trial = {**fresh, "metadata": {**metadata, "generateName": "readmit-"}}
    admitted = api.post(path, trial, {"dryRun": "All"})
    if is_unadmitted(admitted):
        raise CommandFailed("the webhook does not answer yet; nothing was changed", ANSWER_IS_NO)
