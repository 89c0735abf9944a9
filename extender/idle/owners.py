"""Finds what keeps an idle pod running: its Deployment, StatefulSet or Kubeflow Notebook, with certainty.

Users write owner references, and may copy those of another pod. So each object of the chain is read from the API
server and must have the UID of the reference; and it counts only what the owner's own pod template says about idle
pods, so that the right to create a pod is not enough to stop an owner.
"""

from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

import msgspec

from extender.state.objects import WatchedPod
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.asks import idle
from vgpu.domain.asks.idle import NOTHING_SET, Setting
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import Namespace

_NOT_FOUND: Final = 404

PLURALS: Final = {
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("kubeflow.org", "Notebook"): "notebooks",
}
STOPPED_BY: Final = "kubeflow-resource-stopped"  # Kubeflow's notebook controller stops a Notebook that has it
_BELOW: Final = "ReplicaSet"  # without a Deployment above it, it is nothing that the extender may scale
_LONGEST_CHAIN: Final = 2  # from the pod's controller to what controls that


class Reference(msgspec.Struct, frozen=True):
    """An owner reference."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """API group and kind."""
        return self.api_version.rpartition("/")[0], self.kind


class _TemplateMetadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Template(msgspec.Struct):
    metadata: _TemplateMetadata | None = None


class _OwnerSpec(msgspec.Struct):
    template: _Template | None = None


class _OwnerMetadata(msgspec.Struct):
    name: str
    uid: str
    annotations: dict[str, str] | None = None
    owners: list[Reference] | None = msgspec.field(name="ownerReferences", default=None)


class _Object(msgspec.Struct):
    metadata: _OwnerMetadata
    spec: _OwnerSpec | None = None


_decode = msgspec.json.Decoder(_Object).decode


@dataclass(frozen=True, slots=True)
class ScalableOwner:
    """An object that keeps pods running.

    `template` is what its pod template says about idle pods; `is_stopped`, of a Notebook, that it has been stopped.
    """

    api_version: str
    kind: str
    namespace: Namespace
    name: str
    uid: str
    template: Setting = field(default=NOTHING_SET)
    is_stopped: bool = False

    @property
    def path(self) -> str:
        """The object's path in the API."""
        plural = PLURALS[self.api_version.rpartition("/")[0], self.kind]
        return f"/apis/{self.api_version}/namespaces/{self.namespace}/{plural}/{quote(self.name, safe='')}"

    @property
    def reference(self) -> dict[str, str]:
        """The reference for an Event about this object."""
        named = {"namespace": self.namespace, "name": self.name, "uid": self.uid}
        return {"apiVersion": self.api_version, "kind": self.kind, **named}

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


async def find(client: KubernetesClient, pod: WatchedPod) -> ScalableOwner | None:
    """Return what keeps a pod running; None where no owner of a known kind does. Raises KubernetesError."""
    found = await _read(client, names.pod_path(pod.namespace, pod.name), pod.uid)
    owner: ScalableOwner | None = None
    for _ in range(_LONGEST_CHAIN):
        if (reference := _controller(found)) is None:
            break
        above = ScalableOwner(reference.api_version, reference.kind, pod.namespace, reference.name, reference.uid)
        found = await _read(client, above.path, reference.uid)
        if found is None:
            return None
        template = _template(found)
        if template == NOTHING_SET and owner is not None:
            template = owner.template
        owner = replace(above, template=template, is_stopped=STOPPED_BY in (found.metadata.annotations or {}))
    return owner if owner is not None and owner.kind != _BELOW else None


def _controller(found: _Object | None) -> Reference | None:
    references = (found.metadata.owners or ()) if found else ()
    return next((reference for reference in references if reference.controller and reference.key in PLURALS), None)


def _template(found: _Object) -> Setting:
    template = found.spec.template if found.spec else None
    annotations = (template.metadata.annotations if template and template.metadata else None) or {}
    return idle.read(annotations)[0]


async def _read(client: KubernetesClient, path: str, uid: str) -> _Object | None:
    """Return an object; None where it does not exist, has another UID, or cannot be read."""
    try:
        found = _decode(await client.get(path))
    except KubernetesError as error:
        if error.status == _NOT_FOUND:
            return None
        raise
    except msgspec.MsgspecError:
        return None
    return found if found.metadata.uid == uid else None
