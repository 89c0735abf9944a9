"""`vgpu describe` and `vgpu explain`: one object in sections. Pure: JSON in, text out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from vgpu.cli.cluster import tables
from vgpu.cli.cluster.output import NOTHING, Row, coloured, lines, pairs, shown
from vgpu.domain.cards import ownership
from vgpu.domain.identifiers import NodeName

MAX_CARDS: Final = 64


def node(row: Row, gpus: Sequence[Row]) -> str:
    """Describe a node with its cards."""
    head = pairs(
        (
            ("Name", row["name"]),
            ("Status", "ok" if row["usable"] else row["reason"]),
            ("GPUs", f"{row['gpus']} ({row['healthyGpus']} healthy, {row['cordonedGpus']} cordoned)"),
            ("Models", ", ".join(row["models"])),
            ("Memory", _of(row)),
            ("Time", tables.time_of(row)),
            ("Pods", str(row["pods"])),
            ("Slice", f"{row['sliceMiB']} MiB"),
            ("Device plugin", row["pluginVersion"]),
        )
    )
    cells = [
        [str(card["index"]), tables.gpu_status(card), tables.size(card["freeMiB"]), f"{card['freeCores']}%",
         shown(", ".join(tables.tenants(card)))]
        for card in gpus
    ]  # fmt: skip
    return head + "Cards:\n" + _indented(lines(["GPU", "STATUS", "FREE", "FREE-CORES", "TENANTS"], cells))


def gpu(row: Row) -> str:
    """Describe a card with its tenants."""
    head = pairs(
        (
            ("UUID", row["uuid"]),
            ("Node", f"{row['node']}, GPU {row['index']}"),
            ("Model", tables.model_name(row)),
            ("Status", _status(row)),
            ("Mode", row["mode"]),
            ("Memory", _of(row)),
            ("Time", f"{row['allocatedCores']} % guaranteed, {row['freeCores']} % free"),
            ("NUMA node", str(row["numaNode"])),
            ("NVLink peers", ", ".join(row["nvlinkPeers"])),
        )
    )
    cells = [
        [f"{tenant['namespace']}/{tenant['pod']}", tenant["container"], _share(tenant), _used(tenant)]
        for tenant in row.get("pods") or ()
    ]
    groups = _space_groups(row.get("spaceGroups") or ())
    hidden = row["podCount"] - len({(tenant["namespace"], tenant["pod"]) for tenant in row.get("pods") or ()})
    more = f"  and {hidden} pods of namespaces that you may not see\n" if hidden > 0 else ""
    return head + "Containers:\n" + _indented(lines(["POD", "CONTAINER", "SHARE", "USED"], cells)) + more + groups


def _space_groups(groups: Sequence[Row]) -> str:
    """Return the groups in space on a card, each with what its members have and use together; empty for none."""
    cells = [[group["spaceGroup"], str(group["members"]), _share(group), _used(group)] for group in groups]
    return "Groups in space:\n" + _indented(lines(["GROUP", "MEMBERS", "SHARE", "USED"], cells)) if cells else ""


def groups(rows: Sequence[Row]) -> str:
    """Describe a group in space on each of its cards, with its members."""
    return "\n".join(map(_placed_group, rows))


def _placed_group(row: Row) -> str:
    head = pairs(
        (
            ("Group", row["spaceGroup"]),
            ("Node", f"{row['node']}, GPU {row['index']}"),
            ("UUID", row["uuid"]),
            ("State", row["state"]),
            ("Members", str(row["members"])),
            ("Share", _share(row)),
            ("Used", _used(row)),
        )
    )
    cells = [
        [f"{member['namespace']}/{member['pod']}", member["container"], _share(member), _used(member)]
        for member in row["pods"]
    ]
    hidden = row["members"] - len(cells)
    more = f"  and {hidden} of namespaces that you may not see\n" if hidden > 0 else ""
    faults = "".join(
        f"  {shown(fault['namespace'])}/{shown(fault['pod'])}: {fault['reason']}: {shown(fault['message'])}\n"
        for fault in row["faults"]
    )
    told = f"Reported:\n{faults}" if faults else ""
    return head + "Containers:\n" + _indented(lines(["POD", "CONTAINER", "SHARE", "USED"], cells)) + more + told


def _status(row: Row) -> str:
    if owner := tables.counts_on(row):
        return f"{ownership.DUPLICATE}: {ownership.words(NodeName(owner))}"
    return tables.gpu_status(row) + (f": {row['reason']}" if row["reason"] else "")


def pod(row: Row, right_sizes: Sequence[Row] = (), gang: Sequence[Row] = ()) -> str:
    """Describe a pod with its cards, those of its gang, and what its containers have used in the last week."""
    head = pairs(
        (
            ("Name", row["name"]),
            ("Namespace", row["namespace"]),
            ("UID", row["uid"]),
            ("Status", tables.pod_status(row)),
            ("Requested", row["requested"]),
            ("Compute policy", _compute_policy(row)),
            *((("Space group", row["spaceGroup"]),) if row.get("spaceGroup") else ()),
            ("Priority", str(row["priority"])),
            ("Node", row["node"]),
        )
    )
    problems = "".join(f"Problem:  {shown(problem)}\n" for problem in row["problems"])
    cells = [
        [grant["container"], tables.card_name(grant["index"]), _share(grant), _used(grant), grant["uuid"]]
        for grant in row["gpus"]
    ]
    cards = _indented(lines(["CONTAINER", "GPU", "SHARE", "USED", "UUID"], cells))
    sizes = "".join(_right_size(right_size) for right_size in right_sizes)
    used = f"Used in 7 days:\n{sizes}" if sizes else ""
    return head + problems + "Cards:\n" + cards + _gang(row, gang) + used


def _gang(row: Row, gang: Sequence[Row]) -> str:
    """Return the pods of a pod's gang with their nodes and cards, as far as the caller may see them."""
    if not row.get("gang"):
        return ""
    cells = [[one["name"], tables.pod_status(one), one["node"], tables.cards(one["gpus"])] for one in gang]
    return f"Gang {shown(row['gang'])}:\n" + _indented(lines(["POD", "STATUS", "NODE", "GPUS"], cells))


def _right_size(row: Row) -> str:
    """Return a container's line: what it asked for and used, and what it should ask for."""
    cores = "" if row["askedCores"] is None else f"asked {row['askedCores']} %, "
    p95 = "" if row["p95Cores"] is None else f", {row['p95Cores']:.0f} % at p95"
    memory = f"; memory {tables.size(row['peakMiB'])} of {tables.size(row['askedMiB'])}"
    advice = "".join(f"\n    {line}" for line in row["advice"] or [f"advice: {tables.advice(row)}"])
    said = f"{row['container']}: {cores}used {row['meanCores']:.0f} % on average{p95}{memory}"
    return f"  {shown(said)}{advice}\n"


def explanation(found: Row, *, colour: bool) -> str:
    """Explain a pod: the sentence, what would help, and every node's and card's reason."""
    pod_row, near = found["pod"], found["nearest"]
    status = coloured(shown(tables.pod_status(pod_row)), pod_row["status"], colour=colour)
    text = f"Pod {shown(pod_row['namespace'])}/{shown(pod_row['name'])} is {status}"
    text += f" and asks for {shown(pod_row['requested'])}.\n" if pod_row["requested"] else ".\n"
    message = shown(found["message"])
    text += f"{message[:1].upper()}{message[1:]}.\n"
    text += _waits(found)
    if group := pod_row.get("spaceGroup"):
        text += f"Its group in space is {shown(group)}: cards that have members of it are preferred.\n"
    if near and near["wouldHelp"]:
        listed = ", ".join(map(shown, near["wouldHelp"]))
        text += f"\nWhen one of these pods ends, {near['node']} has room: {listed}\n"
    if found["advice"]:
        text += "\nWhat would help:\n" + "".join(_advice(advice) for advice in found["advice"])
    if found["nodes"]:
        text += "\n" + lines(
            ["NODE", "GPU", "FREE", "FREE-CORES", "REASON", "DETAIL"], list(_cells(found["nodes"])), colour=colour
        )
    if found["nodesLeftOut"]:
        text += f"and {found['nodesLeftOut']} more nodes; --nodes N shows more\n"
    return text


def _waits(found: Row) -> str:
    """Return a line that says since when a pod waits, and how often it was tried; empty where it does not wait."""
    if not found["waitsSince"]:
        return ""
    last = found["lastDecision"]
    tried = f"; {last['attempts']} attempts, the last one at {last['time']}" if last else ""
    return f"It waits since {shown(found['waitsSince'])}{tried}.\n"


def simulation(found: Row) -> str:
    """Sum up a simulation: how many pods are placed, and how well the cluster is packed before and after."""
    total = found["placed"] + found["notPlaced"]
    before, after = found["before"], found["after"]
    rows = [
        ["allocated", *(f"{packed['allocatedPercent']:.1f}%" for packed in (before, after))],
        ["empty GPUs", *(f"{packed['emptyGpus']} of {packed['gpus']}" for packed in (before, after))],
        ["fragmented", *(_fragmented(packed) for packed in (before, after))],
    ]
    text = f"\n{found['placed']} of {total} pods are placed\n" + _kept_room(found.get("keptForGang"))
    helped = {(row["namespace"], row["name"]): row for row in reversed(found["pods"]) if row.get("advice")}
    text += "".join(_helpful(row) for row in reversed(helped.values()))
    text += "\n" + lines(["GPUS", "BEFORE", "AFTER"], rows)
    text += "allocated: by memory or time, whichever is more, of the GPUs that take new shares\n"
    if before["fragmentedPercent"] is not None:
        text += "fragmented: the part of what is free that the pods seen so far cannot use\n"
    return text


def _compute_policy(row: Row) -> str:
    """Return the pod's policy; where it names none, that which applies."""
    if row["computePolicy"]:
        return str(row["computePolicy"])
    if row["cores"] and "; " in row["requested"]:  # of several containers, some may ask for time
        return "default: fixed with gpu-cores, else burst"
    return "fixed (the default with gpu-cores)" if row["cores"] else "burst (the default without gpu-cores)"


def _kept_room(kept: Row | None) -> str:
    """Say which room the pods did not get because it is kept free for a gang; nothing where there is none."""
    if kept is None:
        return ""
    return (
        f"{kept['cards']} cards are kept free for {shown(kept['gang'])} since {kept['since']}, until {kept['until']} "
        f"at most: pods of priority {kept['priority']} or lower do not get them (CardKeptForGang)\n"
    )


def _fragmented(packed: Row) -> str:
    return "not known" if packed["fragmentedPercent"] is None else f"{packed['fragmentedPercent']:.1f}%"


def _helpful(row: Row) -> str:
    """Say what would help a pod of a simulation; equal pods have the same advice."""
    return f"\nWhat would help {shown(row['name'])}:\n" + "".join(_advice(advice) for advice in row["advice"])


def _advice(advice: Row) -> str:
    who = " (administrator)" if advice["by"] == "administrator" else ""
    where = f", for {advice['node']}" if advice["node"] and advice["node"] not in advice["text"] else ""
    return f"  - {shown(advice['text'])}{where}{who}\n"


def _cells(nodes: Iterable[Row]) -> Iterator[list[str]]:
    for verdict in nodes:
        name = verdict["node"]
        if verdict["fits"]:
            yield [name, tables.cards(verdict["gpus"]).replace(":", "", 1)[:40], "", "", "fits", ""]
            continue
        if not any(card["reason"] for card in verdict["cards"]):
            yield [name, "", "", "", verdict["reason"], shown(verdict["detail"])]
            continue
        for card in verdict["cards"][:MAX_CARDS]:
            reason = card["reason"] or "fits"
            free = tables.size(card["freeMiB"])
            yield [name, str(card["index"]), free, f"{card['freeCores']}%", reason, shown(card["detail"])]
            name = ""


def _share(grant: Row) -> str:
    if grant.get("whole"):
        return "whole card"
    return tables.size(grant["memoryMiB"]) + (f" and {grant['cores']} %" if grant["cores"] else "")


def _used(grant: Row) -> str:
    if grant["usedMiB"] is None:
        return NOTHING
    return f"{tables.size(grant['usedMiB'])} and {grant['usedCores']} %"


def _of(row: Row) -> str:
    amounts = {name: tables.size(row[name]) for name in ("allocatedMiB", "memoryMiB", "freeMiB")}
    closed = row["memoryMiB"] - row["allocatedMiB"] - row["freeMiB"]
    rest = f", {tables.size(closed)} on GPUs that are closed" if closed else ""
    return f"{amounts['allocatedMiB']} of {amounts['memoryMiB']} allocated, {amounts['freeMiB']} free{rest}"


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def summary(found: dict[str, Any]) -> str:
    """Return the cluster in a few lines."""
    pods = ", ".join(f"{count} {name}" for name, count in found["pods"].items() if count) or "none"
    return pairs(
        (
            ("Version", found["version"]),
            ("Nodes", f"{found['nodes']}, of which {found['usableNodes']} can be used"),
            ("GPUs", f"{found['gpus']}, {found['healthyGpus']} healthy, {found['cordonedGpus']} cordoned"),
            ("Memory", _of(found)),
            ("Time", tables.time_of(found)),
            ("Pods", pods),
            ("Scheduler", found["scheduler"] or "a replica binds pods"),
        )
    )
