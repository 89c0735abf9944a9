"""Values that programs read wrongly: amounts, names, texts and nested JSON."""

import random
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import aliases

AMOUNTS: Final = (
    "0", "1", "-1", "256", "257", "1024", "8192", "16777216", "16777217", "1e3", "1E3", "1e18", "1E18", "18k", "1M",
    "1Gi", "16Gi", "1500m", "1m", "0.5", "1.5", "+5", "005", "9223372036854775807", "9223372036854775808",
    "99999999999999999999999999", "0x10", " 5", "5 ", "5\n", "", "NaN", "inf", "1_000", "\u0663", "\uff11", "1e-3",
    "100", "101", "6400", "64", "65", "1n", "1Ei",
)  # fmt: skip
RESOURCES: Final = (
    *names.USER_RESOURCES,
    *names.KUBELET_RESOURCES,
    *sorted(name for family in aliases.FAMILIES for name in family.all_names()),
    "nvidia.com/priority",
    "aliyun.com/gpu-count",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "vgpu.io/typo",
    "VGPU.IO/gpu-mem",
)
ANNOTATIONS: Final = (
    *names.USER_ANNOTATIONS,
    *names.LIVE_ANNOTATIONS,
    *names.STATE_ANNOTATIONS,
    "vgpu.io/typo",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/vgpu-mode",
    "hami.io/node-scheduler-policy",
    "hami.io/gpu-scheduler-policy",
    "hami.io/vgpu-devices-to-allocate",
    "hami.io/vgpu-devices-allocated",
    "ALIYUN_COM_GPU_MEM_IDX",
    "ALIYUN_COM_GPU_MEM_POD",
    "scheduler.framework.gpushare.allocation",
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-ids-new",
    "scheduling.k8s.io/group-name",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
)
ANNOTATION_VALUES: Final = (
    "binpack",
    "spread",
    "burst",
    "fixed",
    "best-effort",
    "spill",
    "0",
    "100",
    "101",
    "-1",
    "H100",
    "GPU-x",
)
SCHEDULERS: Final = ("", "default-scheduler", names.SCHEDULER, "hami-scheduler", "volcano", "nobody", "VGPU-scheduler")
VISIBLE: Final = ("all", "0", "0,1", "void", "none", "", "GPU-x", "ALL", " all", "all,void", "nvidia.com/gpu=all")
PATHS: Final = (
    "/etc/ld.so.preload",
    "/etc",
    "/run/vgpu",
    "/run/vgpu/limits",
    "/run/vgpu/region",
    "/run/vgpu/arbiter",
    "/run",
    "/usr/local/vgpu",
    "/usr/local/vgpu/libvgpushare.so",
    "/usr/local",
    "/run/../etc/ld.so.preload",
    "//etc/ld.so.preload",
    "/etc/./ld.so.preload",
    "/data",
    "/run/simgpu",
)
DEPTHS: Final = (50, 200, 900, 1200, 3000, 9000, 9990, 11_000)
_TEXTS: Final = (
    "",
    " ",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\u202egpj.exe",
    "\u200b\u200b",
    "\ufeff",
    "\u00e9", # the same letter as the next one, in another normalization form
    "e\u0301",
    "\u212a",
    "\uff10",
    "\U0001f600" * 50,
    "\r\n\r\nGET / HTTP/1.1",
    "{{.Values}}",
    "${HOME}",
    "%s%n",
    "'; DROP TABLE pods; --",
    "../../etc/passwd",
    "null",
    "true",
    "\x1b[2J",
    "\u0130",
    "\u00df",
    ",,,",
    "a," * 500,
)  # fmt: skip


def text(chance: random.Random) -> str:
    """Return a text that is empty, foreign, unprintable, not even valid Unicode, or long."""
    if chance.random() < 0.15:
        return chance.choice(("x", "\u00e9", "GPU-,", "\U0001f600")) * chance.choice((253, 1000, 10_000, 60_000))
    return chance.choice(_TEXTS)


def deep(chance: random.Random, depths: tuple[int, ...] = DEPTHS) -> str:
    """Return JSON text of nested objects or arrays; the API server refuses more than 10,000."""
    depth = chance.choice(depths)
    if chance.random() < 0.5:
        return '{"f:a":' * depth + "{}" + "}" * depth
    return "[" * depth + "]" * depth


def nested_assignment(chance: random.Random) -> str:
    """Return text that looks like an assignment, nested, huge or malformed."""
    return chance.choice(
        (
            '{"v":1,"containers":{}}',
            '{"v":1,"containers":{"main":[{"gpu":"GPU-x","mem":81920,"whole":true}]}}',
            '{"v":1,"containers":{"main":[{"gpu":"GPU-x","mem":-1}]}}',
            '{"v":99999999999999999999}',
            '{"v":1,"containers":' + "[" * 2000 + "]" * 2000 + "}",
            '{"v":1,"v":2,"containers":null}',
            "\0",
        )
    )
