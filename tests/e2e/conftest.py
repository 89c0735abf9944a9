"""One cluster for each process of the session; where no cluster can run, the tests are skipped, or fail under CI."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import one_process, wait
from cluster.cluster import GpuCluster
from cluster.programs import binaries
from tests.e2e.made_cluster import RUNTIME, make
from tests.e2e.pod_namespace import PodNamespace

LOGS = binaries.REPOSITORY / "build" / "e2e-logs" / os.environ.get("PYTEST_XDIST_WORKER", "")

_TIMEOUT_S = 300.0  # a test waits for pods, the first test also for the cluster
_HERE = Path(__file__).parent

# The files that take longest, two minutes and more, are begun first: otherwise one of them runs alone at the end.
# test_chaos and test_two_replicas stand apart, because only one of them runs at a time (one_at_a_time).
_BEGUN_FIRST = [
    "test_two_replicas",
    "test_gangs",
    "test_part_restarts",
    "test_card_health",
    "test_placement",
    "test_chaos",
    "test_history",
    "test_unlimited",
    "test_used_time",
    "test_idle",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test that needs the cluster a longer timeout, and all of them the machine's factor."""
    for item in items:
        if _HERE in item.path.parents and item.get_closest_marker("e2e"):
            own = item.get_closest_marker("timeout") or pytest.mark.timeout(_TIMEOUT_S)
            item.add_marker(pytest.mark.timeout(wait.allowed(own.args[0]), **own.kwargs), append=False)
    places = {name: place for place, name in enumerate(_BEGUN_FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[GpuCluster]:
    """A cluster with vgpushare: two nodes of four cards, or of `VGPU_E2E_CARDS`. Tests leave it as they found it."""
    cards = int(os.environ.get("VGPU_E2E_CARDS", "4"))
    with make(pytestconfig, lambda: GpuCluster(cards=cards, runtime=RUNTIME)) as made:
        yield made
        made.save_logs(LOGS)  # the cluster's folder is removed with the cluster


@pytest.fixture
def one_at_a_time() -> Iterator[None]:
    """For tests that load the machine and state times: no other such test runs meanwhile, in any process.

    Beside two replicas under a churn of 150 pods, a new pod of another cluster started after 90 s.
    """
    lock = binaries.REPOSITORY / "build" / "one-at-a-time.lock"
    with one_process.at_a_time(lock):
        yield


@pytest.fixture
def namespace(cluster: GpuCluster) -> Iterator[PodNamespace]:
    """A Kubernetes namespace for one test. A part that the test has ended fails it, and no other test."""
    made = PodNamespace(cluster, f"test-{uuid.uuid4().hex[:8]}")
    yield made
    ended = [part for part in cluster.parts if part.process.has_ended()]  # a fixture may have stopped one
    for part in ended:
        part.restart()
    made.close()
    assert not ended, [part.name for part in ended]
