"""The columns of each list."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from vgpu.cli.cluster.output import OutputTable, Row, TextColumn
from vgpu.domain.asks import idle
from vgpu.domain.cards import ownership

_SHORTEST_IDLE_S: Final = 60


def size(mib: int) -> str:
    """Write MiB in at most eight characters: `512Mi`, `8Gi`, `5.5Gi`, `1.3Ti`; `80.0Gi` for almost 80 GiB."""
    for unit, scale in (("Ti", 1 << 20), ("Gi", 1 << 10)):
        if mib >= scale:
            return f"{mib // scale}{unit}" if mib % scale == 0 else f"{mib / scale:.1f}{unit}"
    return f"{mib}Mi" if mib else "0"


def gpu_status(row: Row) -> str:
    """Return a card's state in one word."""
    if counts_on(row):
        return ownership.DUPLICATE
    if row.get("nodeReason"):
        return str(row["nodeReason"])
    if not row["healthy"]:
        return "unhealthy"
    if row["cordoned"]:
        return "cordoned"
    return "whole" if row["heldWhole"] else "ok"


def pod_status(row: Row) -> str:
    """Return where a pod is in its life, with the kubelet's word for why it does not run: `Starting (ErrImagePull)`."""
    reason = row.get("statusReason")
    return f"{row['status']} ({reason})" if reason else str(row["status"])


def of_cards(percent_of_one: float | None, cards: int) -> str:
    """Write percent of one card's time, added up over cards, as cards: `2.3 of 8`; empty where it is not known."""
    return "" if percent_of_one is None else f"{round(percent_of_one / 100, 2):g} of {cards}"


def time_of(row: Row) -> str:
    """Return the time of a node's or a cluster's cards: what is guaranteed, and what is free on cards that are open."""
    guaranteed = row.get("allocatedCores")
    first = "" if guaranteed is None else f"{of_cards(guaranteed, row['gpus'])} GPUs guaranteed, "
    return f"{first}{of_cards(row['freeCores'], row['gpus'])} free"


def counts_on(row: Row) -> str:
    """Return the node that a card counts on, where that is another one that reports it too; else an empty text."""
    return str(row.get("countsOn") or "")


def tenants(row: Row) -> list[str]:
    """Return the pods on a card that the caller may see."""
    return list(dict.fromkeys(f"{pod['namespace']}/{pod['pod']}" for pod in row.get("pods") or ()))


def group_amount(group: Row) -> str:
    """Return a group in space on a card with what its members have there together: `team/models: 3 members, 12Gi 30%`.

    That is memory and the share of the card's time.
    """
    count = group["members"]
    return f"{group['spaceGroup']}: {count} member{'s' if count > 1 else ''}, {_memory_and_cores([group])}"


def model_name(row: Row) -> str:
    """Return a card's model, marked where the card uses the machine's memory."""
    return f"{row['model']} (unified)" if row.get("unified") else str(row["model"])


def card_name(index: int) -> str:
    """Return how a pod's card is shown: by its index, or `?` where the node does not report the card (any more)."""
    return str(index) if index >= 0 else "?"


def cards(grants: Iterable[Mapping[str, Any]]) -> str:
    """Return the cards of a pod with what it has of them: `0: 8Gi 30%, 1: whole`."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for grant in grants:
        found.setdefault(grant["index"], []).append(grant)
    return ", ".join(f"{card_name(index)}: {_amount(own)}" for index, own in sorted(found.items()))


def used(grants: Iterable[Mapping[str, Any]]) -> str:
    """Return what a pod uses of its cards: `0: 5.1Gi 22%, 1: 0 0%`; empty where its node reported nothing."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for grant in grants:
        if grant["usedMiB"] is not None:
            found.setdefault(grant["index"], []).append(grant)
    return ", ".join(
        f"{card_name(card)}: {size(sum(grant['usedMiB'] for grant in own))} {sum(grant['usedCores'] for grant in own)}%"
        for card, own in sorted(found.items())
    )


def idle_time(seconds: int | None) -> str:
    """Write how long a pod has used none of its cards, from a minute on; empty where it is in use or not known."""
    return idle.duration_text(seconds) if seconds is not None and seconds >= _SHORTEST_IDLE_S else ""


def _amount(grants: list[Mapping[str, Any]]) -> str:
    return "whole" if any(grant["whole"] for grant in grants) else _memory_and_cores(grants)


def _memory_and_cores(grants: list[Mapping[str, Any]]) -> str:
    cores = sum(grant["cores"] for grant in grants)
    return size(sum(grant["memoryMiB"] for grant in grants)) + (f" {cores}%" if cores else "")


def first_reason(row: Row) -> str:
    """Return the most common reason, with `+N` for more."""
    listed = [reason["reason"] for reason in row["reasons"]]
    return f"{listed[0]}{f' +{len(listed) - 1}' if len(listed) > 1 else ''}" if listed else ""


def nearest(row: Row) -> str:
    """Return the node that lacks the least, and what it lacks; empty where no node is near."""
    near = row["nearest"]
    return f"{near['node']}: {near['detail']}" if near else ""


def attempts(row: Row) -> str:
    """Return how often filter refused a pod since the extender's start."""
    return str(row["lastDecision"]["attempts"] if row["lastDecision"] else 0)


def why_not(row: Row) -> str:
    """Return why a simulated pod is placed nowhere, with the nearest fit; empty where it is placed."""
    if row["node"]:
        return ""
    if row.get("problems"):
        return "; ".join(row["problems"])
    near, gang = nearest(row), row.get("gang")
    room = f"gang {gang['name']}: room for {gang['fit']} of {gang['size']} pods; " if gang else ""
    return room + first_reason(row) + (f"; nearest fit {near}" if near else "")


def _mib(head: str, field: str) -> TextColumn:
    raw = (field, f"{head}_MIB")
    return TextColumn(head, lambda row: "" if row[field] is None else size(row[field]), is_number=True, raw=raw)


def _percent(head: str, field: str) -> TextColumn:
    raw = (field, f"{head.replace('-', '_')}_PERCENT")
    return TextColumn(head, lambda row: percent(row[field]), is_number=True, raw=raw)


def _cards(head: str, field: str) -> TextColumn:
    raw = (field, f"{head.replace('-', '_')}_PERCENT")
    return TextColumn(head, lambda row: of_cards(row[field], row["gpus"]), is_number=True, raw=raw)


def percent(value: float | None) -> str:
    """Write a percentage without digits after the point; empty where it is not known."""
    return "" if value is None else f"{value:.0f}%"


NODES: Final = OutputTable(
    "node",
    (
        TextColumn("NAME", lambda row: row["name"]),
        TextColumn("STATUS", lambda row: "ok" if row["usable"] else row["reason"]),
        TextColumn("GPUS", lambda row: str(row["gpus"]), is_number=True),
        TextColumn("HEALTHY", lambda row: str(row["healthyGpus"]), is_number=True),
        _mib("MEMORY", "memoryMiB"),
        _mib("ALLOCATED", "allocatedMiB"),
        _mib("USED", "usedMiB"),
        _mib("FREE", "freeMiB"),
        _cards("FREE-CORES", "freeCores"),
        _cards("BUSY", "usedCores"),
        TextColumn("PODS", lambda row: str(row["pods"]), is_number=True),
        TextColumn("MODELS", lambda row: ", ".join(row["models"]), is_wide=True),
        TextColumn("CORDONED", lambda row: str(row["cordonedGpus"]), is_wide=True, is_number=True),
        TextColumn("SLICE", lambda row: f"{row['sliceMiB']} MiB", is_wide=True, is_number=True),
        TextColumn("PLUGIN", lambda row: row["pluginVersion"], is_wide=True),
    ),
    lambda row: str(row["name"]),
    "no node has reported GPUs",
)

GPUS: Final = OutputTable(
    "gpu",
    (
        TextColumn("NODE", lambda row: row["node"]),
        TextColumn("GPU", lambda row: str(row["index"]), is_number=True),
        TextColumn("MODEL", model_name),
        TextColumn("STATUS", gpu_status),
        _mib("MEMORY", "memoryMiB"),
        _mib("ALLOCATED", "allocatedMiB"),
        _mib("USED", "usedMiB"),
        _mib("FREE", "freeMiB"),
        _percent("CORES", "allocatedCores"),
        _percent("BUSY", "usedCores"),
        TextColumn("PODS", lambda row: str(row["podCount"]), is_number=True),
        TextColumn("UUID", lambda row: row["uuid"], is_wide=True),
        TextColumn("MODE", lambda row: row["mode"], is_wide=True),
        TextColumn("NUMA", lambda row: str(row["numaNode"]), is_wide=True, is_number=True),
        TextColumn("TENANTS", lambda row: ", ".join(tenants(row)), is_wide=True),
        TextColumn("GROUPS", lambda row: ", ".join(map(group_amount, row.get("spaceGroups") or ())), is_wide=True),
    ),
    lambda row: str(row["uuid"]),
    "no node has reported a GPU",
)

_OF_GROUP: Final = (
    TextColumn("NODE", lambda row: row["node"]),
    TextColumn("GPU", lambda row: str(row["index"]), is_number=True),
    TextColumn("GROUP", lambda row: row["spaceGroup"]),
    TextColumn("MEMBERS", lambda row: str(row["members"]), is_number=True),
    _mib("MEMORY", "memoryMiB"),
    _mib("USED", "usedMiB"),
    _percent("CORES", "cores"),
    _percent("BUSY", "usedCores"),
)
SPACE_GROUPS: Final = OutputTable("group", _OF_GROUP, lambda row: str(row["spaceGroup"]))  # in the rows of cards

GROUPS: Final = OutputTable(
    "group",
    (
        *_OF_GROUP,
        TextColumn("STATE", lambda row: row["state"]),
        TextColumn("UUID", lambda row: row["uuid"], is_wide=True),
        TextColumn("PODS", lambda row: ", ".join(tenants(row)), is_wide=True),
        TextColumn("REPORTED", lambda row: "; ".join(fault["message"] for fault in row["faults"]), is_wide=True),
    ),
    lambda row: str(row["spaceGroup"]),
    "no group in space",
)

PODS: Final = OutputTable(
    "pod",
    (
        TextColumn("NAMESPACE", lambda row: row["namespace"]),
        TextColumn("NAME", lambda row: row["name"]),
        TextColumn("STATUS", pod_status),
        TextColumn("REQUESTED", lambda row: row["requested"]),
        TextColumn("NODE", lambda row: row["node"]),
        TextColumn("GPUS", lambda row: cards(row["gpus"])),
        TextColumn("USED", lambda row: used(row["gpus"])),
        TextColumn(
            "IDLE", lambda row: idle_time(row["idleSeconds"]), is_number=True, raw=("idleSeconds", "IDLE_SECONDS")
        ),
        TextColumn("PRIORITY", lambda row: str(row["priority"]), is_wide=True, is_number=True),
        TextColumn("POLICY", lambda row: row["computePolicy"], is_wide=True),
        TextColumn("GROUP", lambda row: row.get("spaceGroup", ""), is_wide=True),
        TextColumn("GANG", lambda row: row.get("gang", ""), is_wide=True),
        TextColumn("UUIDS", lambda row: ",".join(dict.fromkeys(gpu["uuid"] for gpu in row["gpus"])), is_wide=True),
        TextColumn("PROBLEMS", lambda row: "; ".join(row["problems"]), is_wide=True),
    ),
    lambda row: f"{row['namespace']}/{row['name']}",
    "no pod that asks for GPUs",
)

PENDING: Final = OutputTable(
    "pod",
    (
        TextColumn("NAMESPACE", lambda row: row["namespace"]),
        TextColumn("NAME", lambda row: row["name"]),
        TextColumn("REQUESTED", lambda row: row["requested"]),
        TextColumn("REASON", first_reason),
        TextColumn("NEAREST FIT", nearest),
        TextColumn("SINCE", lambda row: row["waitsSince"], is_wide=True),
        TextColumn("ATTEMPTS", attempts, is_wide=True, is_number=True),
        TextColumn("MESSAGE", lambda row: row["message"], is_wide=True),
    ),
    lambda row: f"{row['namespace']}/{row['name']}",
    "no pod waits",
)

LANDINGS: Final = OutputTable(
    "pod",
    (
        TextColumn("POD", lambda row: row["name"] + (f" #{row['number']}" if row["number"] > 1 else "")),
        TextColumn("REQUESTED", lambda row: row["requested"]),
        TextColumn("NODE", lambda row: row["node"]),
        TextColumn("GPUS", lambda row: cards(row["gpus"])),
        TextColumn("WHY NOT", why_not),
        TextColumn("NAMESPACE", lambda row: row["namespace"], is_wide=True),
        TextColumn("UUIDS", lambda row: ",".join(dict.fromkeys(gpu["uuid"] for gpu in row["gpus"])), is_wide=True),
    ),
    lambda row: f"{row['namespace']}/{row['name']}",
)


def usage(dimensions: list[str]) -> OutputTable:
    """Return the table of usage by these dimensions."""
    groups = [TextColumn(name.upper(), partial(_group, name)) for name in dimensions]
    return OutputTable("usage", (*groups, *_USAGE), lambda row: ",".join(row["group"].values()), "nothing was used")


def hours(seconds: float | None) -> str:
    """Write seconds as hours, with two digits after the point below 100."""
    return "" if seconds is None else f"{seconds / 3600:.{2 if seconds < 360_000 else 0}f}"  # noqa: PLR2004 - 100 hours


def _group(name: str, row: Row) -> str:
    return str(row["group"][name])


def _mean_wait(row: Row) -> str:
    return f"{row['waitingSeconds'] / row['bound']:.1f}s" if row["bound"] else ""


_USAGE: Final = (
    TextColumn(
        "GPU-HOURS", lambda row: hours(row["shareSeconds"]), is_number=True, raw=("shareSeconds", "SHARE_SECONDS")
    ),
    TextColumn(
        "ASKED", lambda row: hours(row["gpuSecondsAsked"]), is_number=True, raw=("gpuSecondsAsked", "GPU_SECONDS_ASKED")
    ),
    TextColumn(
        "USED", lambda row: hours(row["gpuSecondsUsed"]), is_number=True, raw=("gpuSecondsUsed", "GPU_SECONDS_USED")
    ),
    TextColumn("GIB-HOURS", lambda row: f"{row['mibHours'] / 1024:.1f}", is_number=True, raw=("mibHours", "MIB_HOURS")),
    TextColumn("PODS", lambda row: str(row["bound"]), is_number=True, raw=("bound", "PODS")),
    TextColumn("WAITED", _mean_wait, is_number=True, raw=("waitingSeconds", "WAITING_SECONDS")),
    TextColumn(
        "COST", lambda row: "" if row["cost"] is None else f"{row['cost']:.2f}", is_number=True, raw=("cost", "COST")
    ),
)


def advice(row: Row) -> str:
    """Return what a container should ask for, or why nothing is advised."""
    if row["advice"]:
        return "; ".join(row["advice"])
    if not row.get("enoughMeasured", True):
        return "too little was measured"
    return "none: it holds whole cards" if row["wholeCard"] else "as it is"


RIGHT_SIZES: Final = OutputTable(
    "rightsize",
    (
        TextColumn("NAMESPACE", lambda row: row["namespace"]),
        TextColumn("OWNER", lambda row: row["owner"]),
        TextColumn("CONTAINER", lambda row: row["container"]),
        TextColumn("PODS", lambda row: str(row["pods"]), is_number=True, is_wide=True),
        TextColumn(
            "MEASURED", lambda row: f"{hours(row['measuredSeconds'])}h", is_number=True,
            raw=("measuredSeconds", "MEASURED_SECONDS"),
        ),
        _percent("ASKED", "askedCores"),
        _percent("MEAN", "meanCores"),
        _percent("P95", "p95Cores"),
        TextColumn(
            "UNUSED", lambda row: f"{hours(row['unusedGpuSeconds'])}h", is_number=True,
            raw=("unusedGpuSeconds", "UNUSED_GPU_SECONDS"),
        ),
        _mib("MEMORY", "askedMiB"),
        _mib("PEAK", "peakMiB"),
        TextColumn("ADVICE", advice),
    ),
    lambda row: f"{row['namespace']}/{row['owner']}/{row['container']}",
    "nothing was measured",
)  # fmt: skip

FINDINGS: Final = OutputTable(
    "finding",
    (
        TextColumn("SEVERITY", lambda row: row["severity"]),
        TextColumn("ABOUT", lambda row: row["about"]),
        TextColumn("REASON", lambda row: row["reason"]),
        TextColumn("SINCE", lambda row: row.get("since", "")),
        TextColumn("DETAIL", lambda row: row["detail"]),
    ),
    lambda row: f"{row['about']}/{row['reason']}",
)
