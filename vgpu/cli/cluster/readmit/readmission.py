"""Pods that were created while the webhook did not answer: which they are, and how they are created again.

They ask for GPUs and have nothing that the webhook adds, so no scheduler finds a node. Admission happens at creation
only. A pod with a controller is deleted, because its controller creates another. A pod without a controller is created
again from its own manifest. Before that, the API server says by a dry run whether the webhook admits the manifest.
"""

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from limiter.host import Host
from vgpu.cli.cluster import object_pages
from vgpu.cli.cluster.object_pages import ListingApi
from vgpu.cli.cluster.readmit import quota_refusals
from vgpu.cli.cluster.readmit.pod_replacement import Pod, PodReplacement, ReplacementApi
from vgpu.cli.cluster.readmit.saved_manifests import NothingChanged
from vgpu.cli.failure import ANSWER_IS_NO, CommandFailed
from vgpu.domain import names
from vgpu.domain.asks import aliases
from vgpu.domain.json_types import Json

Act = Callable[[Pod], str]  # returns what was done
Keep = Callable[[Pod, str], AbstractContextManager[None]]  # of a manifest, and its old pod's UID

_ASKED: Final = frozenset(names.USER_RESOURCES) | aliases.MARKER_NAMES
_ADDED: Final = frozenset(names.KUBELET_RESOURCES)
_SERVERS: Final = (  # fields that the API server fills in
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)


def waiting(api: ListingApi, namespace: str | None) -> list[Pod]:
    """Return the pods of a namespace, or of all, that wait because the webhook has not admitted them."""
    path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
    pods = object_pages.items(api, path, {"fieldSelector": "spec.nodeName=,status.phase=Pending"})
    return [pod for pod in pods if is_unadmitted(pod)]


def is_unadmitted(pod: Json) -> bool:
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


def check(api: ReplacementApi, pod: Pod) -> None:
    """Ask by a dry run whether the webhook admits a pod's manifest. Raises NothingChanged where it does not.

    The trial has another name, because the pod's own is taken, and a full quota counts it beside the pod. Such a quota
    decides after the webhook, and its refusal counts only where the trial requests more than the pod leaves. The
    webhook may be away then: the pod that is created waits like its predecessor.
    """
    metadata, fresh = pod["metadata"], manifest(pod)
    kept = {key: value for key, value in fresh["metadata"].items() if key not in ("name", "ownerReferences")}
    trial = {**fresh, "metadata": {**kept, "generateName": "readmit-"}}
    try:
        admitted = api.post(f"/api/v1/namespaces/{metadata['namespace']}/pods", trial, {"dryRun": "All"})
    except CommandFailed as error:
        if not quota_refusals.is_refusal(str(error)):
            raise NothingChanged(str(error), error.code) from error
        if lacking := quota_refusals.lacking(str(error)):
            text = f"{error}; the pod leaves too little {', '.join(lacking)} for its successor; nothing was changed"
            raise NothingChanged(text, ANSWER_IS_NO) from error
        return
    if is_unadmitted(admitted):
        raise NothingChanged("the webhook does not answer yet; nothing was changed", ANSWER_IS_NO)


def readmit(api: ReplacementApi, pod: Pod, keep: Keep, host: Host, timeout_s: float) -> str:
    """Create a pod again, or have its controller do so; return what was done, for people.

    `keep` keeps the manifest of a pod without a controller on disk until the new pod exists, which takes at most
    `timeout_s` seconds. Raises NothingChanged where the webhook does not answer or refuses the pod, and CommandFailed
    where the new pod could not be created.
    """
    check(api, pod)
    fresh = manifest(pod)
    replacement = PodReplacement(api, pod, fresh)
    if owner := controller(pod):
        replacement.delete()
        return f"deleted; {owner} creates another"
    with keep(fresh, pod["metadata"]["uid"]):
        created = replacement.run(host, timeout_s)
    if is_unadmitted(created):
        raise CommandFailed("created again, but the webhook did not answer: it waits as before", ANSWER_IS_NO)
    return "created again"
