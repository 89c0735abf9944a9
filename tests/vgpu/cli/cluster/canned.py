"""Fixed answers of an admin REST: two nodes of two cards, a pod on three of them, one pod that waits."""
# ruff: noqa: E501 - one object a line

from typing import Any

UUIDS = ("GPU-00000000-aaaa", "GPU-11111111-bbbb", "GPU-22222222-cccc", "GPU-33333333-dddd")


def grant(index: int, mib: int, cores: int = 0, *, whole: bool = False) -> dict[str, Any]:
    return {
        "container": "main",
        "uuid": UUIDS[index],
        "index": index % 2,
        "memoryMiB": mib,
        "cores": cores,
        "whole": whole,
        "usedMiB": None if whole else mib // 2,
        "usedCores": None if whole else cores // 2,
        "idleSeconds": None if whole else 5460,
    }


def gpu(number: int, allocated: int, cores: int, pods: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    usable = more.get("healthy", True) and not more.get("cordoned", False)
    row = {
        "uuid": UUIDS[number], "node": f"node-{number // 2 + 1}", "index": number % 2, "model": "NVIDIA H100 80GB HBM3",
        "memoryMiB": 81538, "allocatedMiB": allocated, "freeMiB": (81538 - allocated) if usable else 0,
        "allocatedCores": cores, "freeCores": 100 - cores if usable else 0, "shares": len(pods), "heldWhole": False,
        "healthy": True, "reason": "", "countsOn": "", "cordoned": False, "mode": "shared", "numaNode": 0, "nvlinkPeers": [],
        "podCount": len(pods), "pods": pods, "usedMiB": allocated // 2 if pods else None,
        "usedCores": cores // 2 if pods else None, "spaceGroups": [],
    }  # fmt: skip
    return {**row, **more}


def node(number: int, **more: Any) -> dict[str, Any]:
    row = {
        "name": f"node-{number}", "usable": True, "reason": "", "gpus": 2, "healthyGpus": 2, "cordonedGpus": 0,
        "models": ["NVIDIA H100 80GB HBM3"], "memoryMiB": 163076, "allocatedMiB": 16384, "freeMiB": 146692,
        "allocatedCores": 60, "freeCores": 140, "pods": 1, "sliceMiB": 256, "pluginVersion": "0.1.0",
        "usedMiB": 8192, "usedCores": 30,
    }  # fmt: skip
    return {**row, **more}


def pod(name: str, status: str, **more: Any) -> dict[str, Any]:
    row = {
        "namespace": "default", "name": name, "uid": f"{name}-uid", "status": status, "statusReason": "", "node": "", "requested": "8 GiB, 30 %",
        "memoryMiB": 8192, "cores": 30, "gpuCount": 1, "computePolicy": "", "spaceGroup": "", "gang": "", "priority": 0, "gpus": [], "problems": [],
        "idleSeconds": None, "staleSince": "",
    }  # fmt: skip
    return {**row, **more}


TRAIN = pod("train", "Running", node="node-1", requested="2 x 8 GiB, 30 %", gpuCount=2, computePolicy="burst",
            gpus=[grant(0, 8192, 30), grant(1, 8192, 30)],
            idleSeconds=5460)  # fmt: skip
MEMBER = {"computePolicy": "space", "spaceGroup": "default/models"}
WHOLE = pod("whole", "Running", node="node-2", requested="1 whole card", gpus=[grant(2, 81538, 100, whole=True)])
REASONS = [{"reason": "CardInsufficientMemory", "text": "no card has the GPU memory free", "nodes": 2}]
NEAREST = {
    "node": "node-1", "gpus": [{"uuid": UUIDS[0], "index": 0}], "lackingMiB": 2560, "lackingCores": 0,
    "detail": "card 0 lacks 2.5 GiB of memory (5.5 GiB free, 8 GiB asked for)", "wouldHelp": ["default/train"],
}  # fmt: skip
MESSAGE = (
    "needs 8 GiB and 30 % on 1 card; 2 nodes: no card has the GPU memory free (CardInsufficientMemory); nearest fit node-1: "
    "card 0 lacks 2.5 GiB of memory (5.5 GiB free, 8 GiB asked for)"
)
DECISION = {"time": "2026-11-22T11:59:58+00:00", "attempts": 12, "reasons": REASONS}
WAITING = {"waitsSince": "2026-11-22T11:40:00+00:00", "lastDecision": DECISION}
WAITS = {**pod("waits", "Pending", **MEMBER), **WAITING, "message": MESSAGE, "reasons": REASONS, "nearest": NEAREST}
HOSTILE = pod("evil\x1b[31m", "Pending", requested="1 GiB", problems=["spec: is wrong"])


def verdict(number: int, free: int) -> dict[str, Any]:
    return {
        "uuid": UUIDS[number], "index": number % 2, "model": "NVIDIA H100 80GB HBM3", "memoryMiB": 81538, "freeMiB": free,
        "freeCores": 70, "reason": "CardInsufficientMemory", "detail": "not enough memory is free",
    }  # fmt: skip


def refused(name: str, cards: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "node": name, "fits": False, "reason": "CardInsufficientMemory", "detail": "no card has the GPU memory free",
        "gpus": [], "cards": cards,
    }  # fmt: skip


EXPLANATION = {
    "pod": pod("waits", "Pending", **MEMBER), "message": MESSAGE, "fits": False, "nodesThatFit": 0, "reasons": REASONS,
    "nearest": NEAREST, **WAITING,
    "advice": [
        {"code": "ask-for-less-memory", "text": "ask for 5.5 GiB or less (vgpu.io/gpu-mem: 5632)", "node": "node-1",
         "gpus": [], "by": "owner"},
        {"code": "uncordon", "text": "uncordon card 1 of node-2", "node": "node-2", "gpus": [UUIDS[3]],
         "by": "administrator"},
    ],
    "nodes": [
        refused("node-1", [verdict(0, 5632), verdict(1, 512)]),
        {"node": "node-2", "fits": False, "reason": "PluginAway", "detail": "the node's device plugin is not running",
         "gpus": [], "cards": [{**verdict(2, 0), "reason": "", "detail": ""}]},
    ],
    "nodesLeftOut": 3,
}  # fmt: skip
PACKED = {"gpus": 4, "emptyGpus": 1, "allocatedPercent": 40.0, "fragmentedPercent": 8.25}
PACKED_AFTER = {"gpus": 4, "emptyGpus": 1, "allocatedPercent": 50.0, "fragmentedPercent": None}
LANDINGS = [
    {"namespace": "default", "name": "train", "number": 1, "requested": "8 GiB", "node": "node-1",
     "gpus": [grant(0, 8192)], "reasons": [], "nearest": None, "advice": []},
    {"namespace": "default", "name": "train", "number": 2, "requested": "8 GiB", "node": "", "gpus": [],
     "reasons": REASONS, "nearest": NEAREST, "advice": EXPLANATION["advice"]},
]  # fmt: skip
SUMMARY = {
    "version": "0.1.0", "nodes": 2, "usableNodes": 1, "gpus": 4, "healthyGpus": 3, "cordonedGpus": 1, "memoryMiB": 326152,
    "allocatedMiB": 97922, "freeMiB": 130560, "allocatedCores": 160, "freeCores": 140,
    "pods": {"Pending": 1, "Starting": 0, "Running": 2, "Terminating": 0, "Ended": 0}, "scheduler": "",
    "findings": [
        {"severity": "error", "about": "node-2", "reason": "PluginAway", "detail": "the node's device plugin is not running"},
        {"severity": "warning", "about": "node-2 card 1", "reason": "CardCordoned", "detail": "an administrator has cordoned the card"},
    ],
}  # fmt: skip

TENANT = {"namespace": "default", "pod": "train", **grant(0, 8192, 30)}
GROUP = {"spaceGroup": "default/models", "namespace": "default", "name": "models", "members": 2, "cores": 20,
         "memoryMiB": 4096, "usedMiB": 2048, "usedCores": 15, "usedAt": ""}  # fmt: skip
PLACED_GROUP = {
    "node": "node-1", "index": 0, "uuid": UUIDS[0], **GROUP, "state": "Faulted", "staleSince": "",
    "faults": [{"namespace": "default", "pod": "train", "reason": "SpaceServerFaulted",
                "message": "the MPS server of the pod's group default/models has faulted"}],
    "pods": [{**TENANT, "memoryMiB": 2048, "cores": 10}],
}  # fmt: skip
GPUS = [
    gpu(0, 8192, 30, [TENANT], spaceGroups=[GROUP]),
    gpu(1, 8192, 30, [{**TENANT, **grant(1, 8192, 30)}]),
    gpu(2, 81538, 100, [{**TENANT, "pod": "whole", **grant(2, 81538, 100, whole=True)}], heldWhole=True),
    gpu(3, 0, 0, [], healthy=False, reason="XID 79: fallen off the bus", cordoned=True),
]


def page(*rows: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"items": list(rows), "nextCursor": ""}


USAGE = {
    "since": "2026-11-15T00:00:00.000Z", "until": "2026-11-22T00:00:00.000Z", "itemsLeftOut": 0,
    "items": [
        {"group": {"namespace": "default", "day": "2026-11-21"}, "shareSeconds": 3600.0, "gpuSecondsAsked": 1080.0,
         "gpuSecondsUsed": 612.5, "mibHours": 8192.0, "waitingSeconds": 4.2, "bound": 3, "cost": 2.49},
        {"group": {"namespace": "team", "day": "2026-11-21"}, "shareSeconds": 720000.0, "gpuSecondsAsked": 0.0,
         "gpuSecondsUsed": None, "mibHours": 1638400.0, "waitingSeconds": 0.0, "bound": 0, "cost": None},
    ],
}  # fmt: skip

RIGHT_SIZES = {
    "since": "2026-11-15T00:00:00.000Z", "until": "2026-11-22T00:00:00.000Z", "itemsLeftOut": 0, "complete": True,
    "items": [
        {"namespace": "default", "owner": "Deployment/train", "container": "main", "pods": 3,
         "measuredSeconds": 604800.0, "wholeCard": False, "askedCores": 60, "meanCores": 11.4, "p95Cores": 22.3,
         "unusedGpuSeconds": 293933.0, "askedMiB": 16384, "peakMiB": 5120, "enoughMeasured": True, "adviceCores": 30, "adviceMiB": 5888,
         "advice": ["ask for less time: vgpu.io/gpu-cores: 30 (asked 60 %, used 22 % at p95)",
                    "ask for less memory: vgpu.io/gpu-mem: 5888 (asked 16384, peak 5120)"]},
        {"namespace": "team", "owner": "Job/short", "container": "main", "pods": 1, "measuredSeconds": 20.0,
         "wholeCard": False, "askedCores": None, "meanCores": 50.0, "p95Cores": None, "unusedGpuSeconds": 0.0, "askedMiB": 1024, "peakMiB": 512,
         "enoughMeasured": False, "adviceCores": None, "adviceMiB": None, "advice": []},
    ],
}  # fmt: skip

V1 = "/api/v1"
ALL: dict[str, tuple[int, Any]] = {
    f"GET {V1}/gpus": page(*GPUS),
    f"GET {V1}/gpus/{UUIDS[0]}": (200, {**GPUS[0], "podCount": 2}),
    f"GET {V1}/nodes": page(node(1), node(2, usable=False, reason="PluginAway", healthyGpus=1, cordonedGpus=1)),
    f"GET {V1}/nodes/node-1": (200, node(1)),
    f"GET {V1}/pods": page(
        TRAIN, WHOLE, pod("waits", "Pending"), HOSTILE,
        pod("pulls", "Starting", statusReason="ImagePullBackOff", node="node-2"),
    ),
    f"GET {V1}/pods/default/train": (200, TRAIN),
    f"GET {V1}/pods/default/waits/explain": (200, EXPLANATION),
    f"GET {V1}/pending": page(WAITS),
    f"GET {V1}/groups": page(PLACED_GROUP, {**PLACED_GROUP, "index": 1, "uuid": UUIDS[1], "state": "Serving", "faults": []}),
    f"GET {V1}/summary": (200, SUMMARY),
    f"GET {V1}/events": (200, "retry: 1000\n\n"),
    f"GET {V1}/usage": (200, USAGE),
    f"GET {V1}/rightsize": (200, RIGHT_SIZES),
    f"POST {V1}/simulate": (200, {"placed": 1, "notPlaced": 1, "before": PACKED, "after": PACKED_AFTER, "pods": LANDINGS}),
    f"POST {V1}/gpus/{UUIDS[0]}/cordon": (200, {**GPUS[0], "cordoned": True}),
    f"POST {V1}/gpus/{UUIDS[0]}/uncordon": (200, GPUS[0]),
}  # fmt: skip
