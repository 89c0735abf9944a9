"""A few faults under traffic, with a fixed seed: the short form of `python -m tests.e2e.chaos`, on its own cluster."""

from pathlib import Path

import pytest

from cluster import missing, wait
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.chaos.faults import FAULTS
from tests.e2e.chaos.run import Run
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.monitor.latency import Prober

pytestmark = pytest.mark.e2e

CHOSEN = ("kill -9 plugin", "SIGSTOP webhook", "429 to our parts", "state disk full", "kill -9 arbiter")


@pytest.mark.timeout(900)  # with the wait for another test
@pytest.mark.usefixtures("one_at_a_time")
def test_after_each_fault_everything_is_normal_in_the_stated_time(tmp_path: Path) -> None:
    try:
        cluster = ChaosCluster(runtime=RUNTIME)
    except missing.Missing as lacking:
        pytest.skip(str(lacking))
    faults = [fault._replace(within_s=wait.allowed(fault.within_s)) for fault in FAULTS if fault.name in CHOSEN]
    with cluster, Prober(cluster) as prober:
        run = Run(cluster, prober, tmp_path, seed=3)
        run.go(faults, lambda: not run.seconds.keys() >= set(CHOSEN))
        assert not run.findings.counts(), "\n".join(run.table())
