"""The random walk as a test: three faults in the ordinary suite, five minutes of all of them in `make e2e-walk`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import missing
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.walk.actions import FAULTS
from tests.e2e.walk.run import Walk
from tests.e2e.walk.walk_cluster import WalkCluster

SHORT = ("leader killed", "database down", "card moved")
LONG_S = 300.0


@contextmanager
def made() -> Iterator[WalkCluster]:
    try:
        cluster = WalkCluster(runtime=RUNTIME)
    except missing.Missing as lacking:
        pytest.skip(str(lacking))
    with cluster:
        yield cluster


@pytest.mark.e2e
@pytest.mark.timeout(900)  # with the wait for another test
@pytest.mark.usefixtures("one_at_a_time")
def test_all_views_agree_after_each_round_of_a_short_walk(tmp_path: Path) -> None:
    with made() as cluster:
        walk = Walk(cluster, tmp_path, seed=1, faults=[fault for fault in FAULTS if fault.name in SHORT])
        walk.go(lambda: walk.rounds < len(SHORT))
        assert not walk.findings.counts(), "\n".join(walk.table())


@pytest.mark.slow_cluster
@pytest.mark.timeout(1800)  # the last round may wait for its quiet
def test_all_views_agree_after_each_round_of_a_long_walk(tmp_path: Path) -> None:
    with made() as cluster:
        walk, end = Walk(cluster, tmp_path, seed=1), time.monotonic() + LONG_S
        walk.go(lambda: time.monotonic() < end)
        assert not walk.findings.counts(), "\n".join(walk.table())
