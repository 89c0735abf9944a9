"""The random walk as a test: five minutes in `make e2e-walk`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import missing
from tests.e2e.made_cluster import RUNTIME
from tests.e2e.walk.run import Walk
from tests.e2e.walk.walk_cluster import WalkCluster

WALK_S = 300.0


@contextmanager
def made() -> Iterator[WalkCluster]:
    try:
        cluster = WalkCluster(runtime=RUNTIME)
    except missing.Missing as lacking:
        pytest.skip(str(lacking))
    with cluster:
        yield cluster


@pytest.mark.slow_cluster
@pytest.mark.timeout(1800)  # the last round may wait for its quiet
def test_all_views_agree_after_each_round_of_the_walk(tmp_path: Path) -> None:
    with made() as cluster:
        walk, end = Walk(cluster, tmp_path, seed=1), time.monotonic() + WALK_S
        walk.go(lambda: time.monotonic() < end)
        assert not walk.findings.counts(), "\n".join(walk.table())
