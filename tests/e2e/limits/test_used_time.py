"""Used GPU time and memory, from a container's kernels to the reports of the history, on the real cluster."""

import time
from typing import Any

import pytest

from cluster import command_line
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import PodNamespace, container, pod

pytestmark = pytest.mark.e2e

CORES = 30
USED_MIB = 300
PROBE_MIB = 2  # what a process takes for a moment when it starts (limiter/src/charge/measure/nvml_probe.h)
LASTS_S = 80  # one full minute, and the reports
MINUTE_S = 90  # another one: a new period begins with the hour, and half a minute before that does not count


def asked(namespace: PodNamespace, *arguments: str) -> Any:
    return command_line.read(namespace.cluster, "admin", *arguments, "-n", namespace.name)


def used_s(namespace: PodNamespace) -> float | None:
    (row,) = asked(namespace, "usage", "--since", "1h")["items"] or [{"gpuSecondsUsed": None}]
    used: float | None = row["gpuSecondsUsed"]
    return used


def size_of_a_minute(namespace: PodNamespace) -> dict[str, Any] | None:
    """Return the advice for the only container, once it is from a minute."""
    (size,) = asked(namespace, "rightsize", "--since", "1h")["items"]
    return size if size["p95Cores"] is not None else None


@pytest.mark.timeout(390)
def test_used_time_reaches_the_reports_and_the_advice(namespace: PodNamespace) -> None:
    """A container with 30 percent that launches without a pause uses 30 percent; the history has asked and used."""
    node, plugin = namespace.cluster.nodes[0], namespace.cluster.plugins[0]
    plugin.restart("--usage-period=5")
    try:
        uses = f"gpuprobe alloc {USED_MIB} --hold 0 & exec gpuprobe spin 1000"
        spins = container(command=("sh", "-c", uses), gpu_mem=8192, gpu_cores=CORES)
        namespace.create(pod("spins", spins, annotations=at(node)))
        namespace.running("spins")
        namespace.until(lambda: used_s(namespace), "used time is in the history", 60)
        before, began = used_s(namespace) or 0.0, time.monotonic()
        time.sleep(LASTS_S)
        after, took = used_s(namespace) or 0.0, time.monotonic() - began
        assert (after - before) / took == pytest.approx(CORES / 100, abs=0.06)
        (row,) = asked(namespace, "get", "pods")["items"]
        (grant,) = row["gpus"]
        assert grant["usedCores"] == pytest.approx(CORES, abs=6)
        assert grant["usedMiB"] == USED_MIB
        size = namespace.until(lambda: size_of_a_minute(namespace), "a minute is in the advice", MINUTE_S)
        assert (size["owner"], size["container"], size["askedCores"]) == ("Pod/spins", "main", CORES)
        assert size["p95Cores"] == pytest.approx(CORES, abs=8)
        assert USED_MIB <= size["peakMiB"] <= USED_MIB + PROBE_MIB
        namespace.delete("spins")
        ended = used_s(namespace) or 0.0
        time.sleep(15)
        assert used_s(namespace) == pytest.approx(ended, abs=3)
    finally:
        plugin.restart()
