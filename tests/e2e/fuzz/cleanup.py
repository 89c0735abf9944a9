"""Deletes every pod of the fuzzer, and waits until the cards are free again."""

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from cluster import api, wait
from cluster.cluster import GpuCluster
from tests.e2e import pod_namespace
from tests.e2e.fuzz.tenant import PODS
from tests.e2e.monitor import extender_accounts, json_depth, snapshot
from tests.e2e.monitor.findings import Finding
from tests.e2e.monitor.snapshot import Document

_EMPTY_S: Final = 90.0
_REPORT_LAG_S: Final = 6.0  # the extender corrects reports of held slices for 5 s after a pod's end


def pods(cluster: GpuCluster) -> list[Document]:
    """Return every pod of the fuzzer."""
    found: list[Document] = json_depth.loads(cluster.api.text(PODS).encode())["items"]
    return found


def delete_all(cluster: GpuCluster) -> None:
    """Delete every pod; those on no node or on a node that does not exist at once, because no kubelet ends them."""
    known = {node.name for node in cluster.nodes}
    cluster.api.text_of("DELETE", PODS, gracePeriodSeconds="1")
    for pod in pods(cluster):
        if pod["spec"].get("nodeName", "") not in known:
            with contextlib.suppress(api.RequestRefused):  # the pod has gone meanwhile
                cluster.api.text_of("DELETE", f"{PODS}/{pod['metadata']['name']}", gracePeriodSeconds="0")


def until_free(cluster: GpuCluster) -> Iterator[Finding]:
    """Wait after `delete_all`; yield what is not free again."""
    try:
        wait.until(lambda: not pods(cluster), "no pod is left", _EMPTY_S)
        wait.until(lambda: not pod_namespace.held_slices(cluster), "no slice is held", _EMPTY_S)
    except wait.Overdue as overdue:
        left = [pod["metadata"]["name"] for pod in pods(cluster)]
        yield Finding(f"not free after cleanup: {overdue}"[:90], f"{left}: {pod_namespace.held_slices(cluster)}")
        return
    time.sleep(_REPORT_LAG_S)
    for found in extender_accounts.differences(cluster, snapshot.take(cluster)):
        yield Finding(f"after cleanup {found.kind}", found.detail)
