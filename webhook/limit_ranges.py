"""Undoes what a LimitRange does to containers without a GPU: a default of gpu-cores is given to every container.

The API server's LimitRanger runs before webhooks, and names in an annotation what it has set:
`LimitRanger plugin set: cpu, vgpu.io/gpu-cores limit for container main`.
https://github.com/kubernetes/kubernetes/blob/v1.36.0/plugin/pkg/admission/limitranger/admission.go
"""

import re
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import aliases, manifest, request, translate
from vgpu.domain.json_types import Json

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_SET: Final = re.compile(r"(?:^LimitRanger plugin set: |; )([^;]+?) (?:request|limit) for (?:init )?container ([^;]+)")
_MEANINGLESS_WITHOUT: Final = frozenset({names.GPU_MEM, names.GPU_MEM_PERCENTAGE, *aliases.MARKER_NAMES})


def without_defaulted_cores(pod: Json) -> Json:
    """Return the pod without the default of gpu-cores in containers that ask for no share of a GPU."""
    defaulted = _defaulted(manifest.annotations(pod).get(ANNOTATION, ""))
    if not defaulted or request.has_too_many_containers(pod, manifest.asks):
        return pod
    containers = [container for _, _, container in request.containers_of(pod)]
    undone = [_undone(container) if container.get("name") in defaulted else container for container in containers]
    return pod if undone == containers else translate.with_containers(pod, undone)


def _defaulted(annotation: str) -> frozenset[str]:
    """Return the containers for which LimitRanger has set gpu-cores."""
    return frozenset(container for set_, container in _SET.findall(annotation) if names.GPU_CORES in set_.split(", "))


def _undone(container: Json) -> Json:
    asks_for_a_share = not _MEANINGLESS_WITHOUT.isdisjoint(request.amounts(container))
    return container if asks_for_a_share else translate.replaced(container, {names.GPU_CORES}, {})
