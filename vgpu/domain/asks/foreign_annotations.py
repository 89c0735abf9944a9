"""Translates pod annotations of HAMi, gpushare and Volcano into vgpushare's, or refuses them by name.

Sources: HAMi's `docs/config.md`, `docs/scheduling-policy.md` and `docs/develop/protocol.md`; the README of
https://github.com/Project-HAMi/volcano-vgpu-device-plugin; `docs/designs/designs.md` of
https://github.com/AliyunContainerService/gpushare-scheduler-extender.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import policy
from vgpu.domain.problem import Problem

# Whose values are only those that mean the same in both: vgpushare has policies that HAMi does not, and the reverse.
_POLICIES: Final = {
    "hami.io/node-scheduler-policy": names.NODE_POLICY,
    "hami.io/gpu-scheduler-policy": names.GPU_POLICY,
}
_POLICY_VALUES: Final = ("binpack", "spread")

TRANSLATED: Final = {
    "nvidia.com/use-gputype": names.USE_GPU_MODEL,
    "nvidia.com/nouse-gputype": names.AVOID_GPU_MODEL,
    "nvidia.com/use-gpuuuid": names.USE_GPU_UUID,
    "nvidia.com/nouse-gpuuuid": names.AVOID_GPU_UUID,
    **_POLICIES,
}

# Annotations with a single value that says what vgpushare does anyway.
WITHOUT_EFFECT: Final = {
    "nvidia.com/vgpu-mode": "hami-core",
    "volcano.sh/vgpu-mode": "hami-core",
    "nvidia.com/numa-bind": "false",
}

REFUSED: Final = {
    "hami.io/device-scoring-weights": f"is not supported; choose {names.GPU_POLICY}",
    "volcano.sh/vgpu-podgroup-policy": "is not supported: pods of a group are placed one by one",
}

# Written by the products' schedulers and device plugins; they mean nothing here, and copies of live pods carry them.
STATE: Final = frozenset(
    {
        "hami.io/vgpu-node",
        "hami.io/vgpu-time",
        "hami.io/devices-to-allocate",
        "hami.io/vgpu-devices-to-allocate",
        "hami.io/vgpu-devices-allocated",
        "hami.io/bind-phase",
        "hami.io/bind-time",
        "volcano.sh/vgpu-node",
        "volcano.sh/vgpu-time",
        "volcano.sh/vgpu-ids-new",
        "volcano.sh/devices-to-allocate",
        "volcano.sh/gpu-index",
        "ALIYUN_GPU_ID",
        "ALIYUN_COM_GPU_MEM_IDX",
        "ALIYUN_COM_GPU_MEM_DEV",
        "ALIYUN_COM_GPU_MEM_POD",
        "ALIYUN_COM_GPU_MEM_ASSIGNED",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
    }
)
NAMES: Final = frozenset((*TRANSLATED, *WITHOUT_EFFECT, *REFUSED, *STATE))

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
        if name in _POLICIES and value not in _POLICY_VALUES:
            said = f"must be one of {', '.join(_POLICY_VALUES)}; {_POLICIES[name]} has more policies"
        if mine and annotations.get(mine, ours[mine]) != ours[mine]:
            said = f"cannot be combined with {mine}, which has another value"
        if said:
            yield Problem(f"metadata.annotations[{name}]", value, said)
