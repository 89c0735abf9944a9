"""Warnings about a pod that is admitted, but most likely not what its owner meant: kubectl prints them."""

from vgpu.domain import names
from vgpu.domain.asks import manifest, request
from vgpu.domain.asks.request import ContainerRequest
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from vgpu.domain.quantity import GIB_IN_MIB, SMALLEST_PLAIN_MIB


def warnings(pod: Json) -> list[str]:
    """Return the warnings about a new pod, after all mutation."""
    asked = request.parse(pod).request if manifest.wants_gpu(pod) else None
    return [str(_tiny(container)) for container in asked.containers if _is_tiny(container)] if asked else []


def _is_tiny(container: ContainerRequest) -> bool:
    return 0 < container.memory_mib < SMALLEST_PLAIN_MIB


def _tiny(container: ContainerRequest) -> Problem:
    """Return the warning: 4 is a common mistake for 4096, because gpushare counts in GiB and vgpushare in MiB."""
    total = container.memory_mib * container.gpus
    return Problem(
        f"containers[{container.name}].resources.limits[{names.GPU_MEM}]",
        str(total),
        f"is in MiB, and too little for a CUDA program; for {total} GiB write {total * GIB_IN_MIB}",
    )
