"""The kept hostile pods on the real cluster, with a prober beside them: a short form of tests/e2e/fuzz."""

from pathlib import Path

import pytest

from cluster.cluster import GpuCluster
from tests.e2e.fuzz import rounds
from tests.e2e.monitor.latency import Prober
from tests.e2e.pod_namespace import PodNamespace, pod
from tests.hostile_pods import corpus

pytestmark = pytest.mark.e2e

FIRE_S = 10.0


def test_hostile_pods_neither_end_nor_delay_a_part_and_every_account_agrees(
    cluster: GpuCluster, namespace: PodNamespace, tmp_path: Path
) -> None:
    namespace.create(pod("first", gpu_mem=256))
    namespace.running("first")  # so the extender leads: filter answers 503 while a new leader lists the pods
    namespace.delete("first")
    with Prober(cluster) as prober:
        small = (case for case in corpus.cases() if len(case.body()) < 200_000)
        run = rounds.Run(cluster, prober, tmp_path, 1, FIRE_S, cases=small)
        run.round()
        assert not run.findings.counts(), "\n".join(rounds.summary(run, prober))
