"""Translates pod annotations of HAMi, gpushare and Volcano into vgpushare's, or refuses them by name.

Sources: HAMi's `docs/config.md`, `docs/scheduling-policy.md` and `docs/develop/protocol.md`; the README of
https://github.com/Project-HAMi/volcano-vgpu-device-plugin; `docs/designs/designs.md` of
https://github.com/AliyunContainerService/gpushare-scheduler-extender.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import policy
from vgpu.domain.problem import Problem, clipped

TRANSLATED: Final = {
    "nvidia.com/use-gputype": names.USE_GPU_MODEL,
    "nvidia.com/nouse-gputype": names.AVOID_GPU_MODEL,
    "nvidia.com/use-gpuuuid": names.USE_GPU_UUID,
    "nvidia.com/nouse-gpuuuid": names.AVOID_GPU_UUID,
    "hami.io/node-scheduler-policy": names.NODE_POLICY,
    "hami.io/gpu-scheduler-policy": names.GPU_POLICY,
}

# Annotations with a single value that says what vgpushare does anyway.
WITHOUT_EFFECT: Final = {
    "nvidia.com/vgpu-mode": "hami-core",
    "volcano.sh/vgpu-mode": "hami-core",
    "nvidia.com/numa-bind": "false",
}

_STATE: Final = "is written by another product's scheduler; leave it out"
REFUSED: Final = {
    "hami.io/device-scoring-weights": f"is not supported; choose {names.GPU_POLICY}",
    "volcano.sh/vgpu-podgroup-policy": "is not supported: pods of a group are placed one by one",
    "hami.io/vgpu-node": _STATE,
    "hami.io/vgpu-time": _STATE,
    "hami.io/devices-to-allocate": _STATE,
    "hami.io/vgpu-devices-to-allocate": _STATE,
    "hami.io/vgpu-devices-allocated": _STATE,
    "hami.io/bind-phase": _STATE,
    "hami.io/bind-time": _STATE,
    "volcano.sh/vgpu-node": _STATE,
    "volcano.sh/vgpu-time": _STATE,
    "volcano.sh/vgpu-ids-new": _STATE,
    "volcano.sh/devices-to-allocate": _STATE,
    "volcano.sh/gpu-index": _STATE,
    "ALIYUN_GPU_ID": _STATE,
    "ALIYUN_COM_GPU_MEM_IDX": _STATE,
    "ALIYUN_COM_GPU_MEM_DEV": _STATE,
    "ALIYUN_COM_GPU_MEM_POD": _STATE,
    "ALIYUN_COM_GPU_MEM_ASSIGNED": _STATE,
    "ALIYUN_COM_GPU_MEM_ASSUME_TIME": _STATE,
}
NAMES: Final = frozenset((*TRANSLATED, *WITHOUT_EFFECT, *REFUSED))

_TYPE_PREFIX: Final = "NVIDIA-"  # HAMi writes types as `NVIDIA-NVIDIA L4`, where NVML says `NVIDIA L4`


def translate(annotations: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """Return a pod's annotations with ours added for foreign ones, and a problem for each that has no translation."""
    ours = {TRANSLATED[name]: _value(name, annotations[name]) for name in TRANSLATED.keys() & annotations.keys()}
    return {**annotations, **ours}, [*_problems(annotations, ours)]


def _value(name: str, value: str) -> str:
    if not name.endswith("gputype"):
        return value
    return ",".join(word.strip().removeprefix(_TYPE_PREFIX) for word in value.split(",", policy.MAX_MODELS))


def _problems(annotations: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Problem]:
    why = {problem.field: problem.why for problem in policy.parse(ours)[1]}
    for name in sorted(NAMES & annotations.keys()):
        mine, value = TRANSLATED.get(name, ""), annotations[name]
        said = REFUSED.get(name) or why.get(f"metadata.annotations[{mine}]", "")
        if name in WITHOUT_EFFECT and value != WITHOUT_EFFECT[name]:
            said = f"is not supported; only {WITHOUT_EFFECT[name]} is"
        if mine and annotations.get(mine, ours[mine]) != ours[mine]:
            said = f"cannot be combined with {mine}, which has another value"
        if said:
            yield Problem(f"metadata.annotations[{name}]", clipped(value), said)
