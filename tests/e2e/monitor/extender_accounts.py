"""What the extender takes for free on each card, asked through its filter, against what the pods in the API take."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import httpx

from cluster import api, parts
from cluster.cluster import GpuCluster
from tests.e2e.monitor import accounts
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.snapshot import Snapshot
from vgpu.domain import names
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import CardState


def differences(cluster: GpuCluster, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each card of which the extender would give out more, or less, than is free."""
    nodes = [node.name for node in cluster.nodes]
    with httpx.Client(transport=api.Transport(cluster.within), base_url=parts.EXTENDER, timeout=10) as http:
        for uuid, (card, slice_mib, used) in accounts.taken(snapshot).items():
            free = CardState(card, slice_mib, used).free_mib
            is_free = f"{uuid}: {free} MiB are free, {used}; the kubelet's report: {card.held_slices} slices"
            refusals = partial(_refusals, http, nodes, card, slice_mib)
            if free and (refused := refusals(free)):
                least = f"it gives out at most {_most(refusals, free)} MiB; refused: {refused}"
                detail = "; ".join((is_free, least, *_metrics(http, uuid)))
                yield Finding("the extender takes free memory for taken", detail, uuid)
            if free < card.memory_mib and not refusals(free + 1):
                yield Finding("the extender takes held memory for free", is_free, uuid)


def _metrics(http: httpx.Client, uuid: str) -> list[str]:
    """Return what the extender's metrics say about a card, and how old its watches are."""
    lines = http.get(f"http://127.0.0.1:{parts.EXTENDER_METRICS_PORT}/metrics").text.splitlines()
    return [line for line in lines if uuid in line or line.startswith("vgpu_extender_watch_age_seconds{")]


def _most(refusals: Callable[[int], Mapping[str, str]], refused: int) -> int:
    """Return the largest amount that is not refused; 0 where every amount is."""
    low, high = 0, refused
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refusals(middle) else (middle, high)
    return low


def _refusals(http: httpx.Client, nodes: list[str], card: Card, slice_mib: int, mib: int) -> dict[str, str]:
    """Return why each node refuses a pod of `mib` on a card; empty where a node takes the pod."""
    limits = {names.GPU_MEM: str(mib), names.SLICE: str(-(-mib // slice_mib))}
    pod: dict[str, Any] = {
        "metadata": {"name": "auditor", "namespace": "default", "uid": f"auditor-{card.uuid}"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
    }
    pod["metadata"]["annotations"] = {names.USE_GPU_UUID: card.uuid}
    answer = http.post("/filter", json={"Pod": pod, "NodeNames": nodes}).json()
    if answer.get("NodeNames"):
        return {}
    refused = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
    return refused or {"": answer.get("Error", "")}
