"""The rules of `manifests/base/policies.yaml` that the webhook does not check too.

They are about the scheduler, a namespace's labels, and names of other tools.

A real API server evaluates all ValidatingAdmissionPolicies; here they are no objects. The rules hold where
vgpushare's webhook is installed.
"""

from collections.abc import Iterator
from typing import Final, NoReturn

from vgpu.domain import names
from vgpu.domain.asks import manifest, other_names, space
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import Json

_INVALID: Final = 422
_DIGITS: Final = 3  # of the highest priority, 100


def check_scheduler(new: Json) -> None:
    """Raise KubernetesError where a pod holds what only our scheduler assigns, and names another one."""
    is_ours = (new.get("spec") or {}).get("schedulerName") == names.SCHEDULER
    if is_ours or not any(map(_is_held, (container for _, container in manifest.every_container(new)))):
        return
    _refuse(
        new,
        f"{names.SLICE} and {names.CARD} need spec.schedulerName {names.SCHEDULER}; "
        "leave the three out, the webhook adds them",
    )


def check_priority(new: Json, old: Json | None, namespace_labels: Json) -> None:
    """Raise KubernetesError where a pod's priority is new and above the limit of its namespace."""
    priority = manifest.annotations(new).get(names.PRIORITY, "0")
    before = manifest.annotations(old).get(names.PRIORITY, "0") if old is not None else "0"
    most = str(namespace_labels.get(names.MAX_PRIORITY_LABEL, "0"))
    if priority == before or not manifest.wants_gpu(new) or (_is_number(priority, most) and int(priority) <= int(most)):
        return
    why = (
        f"metadata.annotations[{names.PRIORITY}] is above the namespace's limit of {most}; "
        f"an administrator raises it by the namespace's label {names.MAX_PRIORITY_LABEL}"
    )
    _refuse(new, why)


def check_space_group(new: Json, old: Json | None, namespace_labels: Json) -> None:
    """Raise KubernetesError where a pod is newly in a group in space of the cluster that its namespace may not use."""
    group = manifest.annotations(new).get(names.SPACE_GROUP, "")
    before = manifest.annotations(old).get(names.SPACE_GROUP, "") if old is not None else ""
    allowed = f"{space.SHARED}{namespace_labels.get(names.SHARED_SPACE_GROUP_LABEL, '')}"
    if not group.startswith(space.SHARED) or group in (before, allowed) or not manifest.wants_gpu(new):
        return
    _refuse(
        new,
        f"metadata.annotations[{names.SPACE_GROUP}] names a group of the cluster that the namespace may not use; "
        f"an administrator names it in the namespace's label {names.SHARED_SPACE_GROUP_LABEL}",
    )


def warnings(new: Json, old: Json | None) -> Iterator[str]:
    """Yield the warnings about the names of other tools in a pod that its author creates."""
    owners = (new.get("metadata") or {}).get("ownerReferences") or ()
    if old is not None or any(owner.get("controller") for owner in owners):
        return
    policy = "Validation failed for ValidatingAdmissionPolicy 'vgpu-other-names' with binding 'vgpu-other-names'"
    for warning in other_names.warnings(new):
        yield f"{policy}: {warning.field} {warning.why}"


def _is_held(container: Json) -> bool:
    """Whether the kubelet holds slices or a card for a container."""
    resources = container.get("resources") or {}
    return any({names.SLICE, names.CARD} & (resources.get(key) or {}).keys() for key in ("limits", "requests"))


def _refuse(new: Json, why: str) -> NoReturn:
    name = new.get("metadata", {}).get("name", "")
    policy = "ValidatingAdmissionPolicy 'vgpu-pods' with binding 'vgpu-pods' denied request"
    raise KubernetesError(_INVALID, "Invalid", f'pods "{name}" is forbidden: {policy}: {why}')


def _is_number(*texts: str) -> bool:
    return all(text.isascii() and text.isdigit() and len(text) <= _DIGITS for text in texts)
