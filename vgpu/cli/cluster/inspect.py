"""`vgpu inspect`: the view of `kubectl inspect gpushare`: a line for each node, a column for each card."""

from collections.abc import Mapping, Sequence
from typing import Any

from vgpu.cli.cluster.output import NOTHING, lines

Row = Mapping[str, Any]
RULE = "-" * 86


def overview(gpus: Sequence[Row]) -> str:
    """Return allocated and total memory of each card in GiB, and of the cluster."""
    nodes: dict[str, list[Row]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu["node"], []).append(gpu)
    most = max((len(node) for node in nodes.values()), default=0)
    heads = ["NAME", *(f"GPU{n}(Allocated/Total)" for n in range(most)), "GPU Memory(GiB)"]
    cells = [
        [name, *(_pair([card]) for card in cards), *[""] * (most - len(cards)), _pair(cards)]
        for name, cards in nodes.items()
    ]
    return lines(heads, cells) + _total(gpus)


def details(gpus: Sequence[Row]) -> str:
    """Return, for each node, the pods on its cards with their memory in GiB."""
    nodes: dict[str, list[Row]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu["node"], []).append(gpu)
    return "".join(_node(name, cards) for name, cards in nodes.items()) + _total(gpus)


def _node(name: str, cards: Sequence[Row]) -> str:
    pods: dict[tuple[str, str], dict[int, int]] = {}
    for card in cards:
        for tenant in card.get("pods") or ():
            amounts = pods.setdefault((tenant["namespace"], tenant["pod"]), {})
            amounts[card["index"]] = amounts.get(card["index"], 0) + tenant["memoryMiB"]
    heads = ["NAME", "NAMESPACE", *(f"GPU{card['index']}(Allocated)" for card in cards)]
    cells = [
        [pod or NOTHING, namespace or NOTHING, *(_gib(amounts.get(card["index"], 0)) for card in cards)]
        for (namespace, pod), amounts in sorted(pods.items())
    ]
    allocated, total = (sum(card[key] for card in cards) for key in ("allocatedMiB", "memoryMiB"))
    foot = f"Allocated : {_gib(allocated)} ({_percent(allocated, total)})\nTotal :     {_gib(total)}\n"
    return f"NAME:       {name}\n\n{lines(heads, cells)}{foot}{RULE}\n\n"


def _total(gpus: Sequence[Row]) -> str:
    allocated, total = (sum(gpu[key] for gpu in gpus) for key in ("allocatedMiB", "memoryMiB"))
    share = _percent(allocated, total)
    return f"{RULE}\nAllocated/Total GPU Memory In Cluster:\n{_gib(allocated)}/{_gib(total)} ({share})\n"


def _pair(cards: Sequence[Row]) -> str:
    return f"{_gib(sum(card['allocatedMiB'] for card in cards))}/{_gib(sum(card['memoryMiB'] for card in cards))}"


def _gib(mib: int) -> str:
    return f"{mib / 1024:.1f}".removesuffix(".0")


def _percent(part: int, total: int) -> str:
    return f"{part * 100 // total if total else 0}%"
