"""One cluster for the whole session, and what becomes of the suite where none can be had."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import binaries, missing
from cluster.cluster import Cluster
from tests.e2e.pod_namespace import Space

LOGS = binaries.REPOSITORY / "build" / "e2e-logs"

_TIMEOUT_S = 300  # a test here waits for pods; the first one also for the cluster
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test that needs the cluster the time it needs."""
    for item in items:
        ours = _HERE in item.path.parents and item.get_closest_marker("e2e")
        if ours and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster with vgpushare: two nodes of four cards. Tests leave it as they found it."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        made = _made()
    with made:
        yield made
        made.save_logs(LOGS)  # for whoever reads about a failure after the cluster is gone


@pytest.fixture
def space(cluster: Cluster) -> Iterator[Space]:
    """A Kubernetes namespace for one test."""
    made = Space(cluster, f"test-{uuid.uuid4().hex[:8]}")
    yield made
    made.close()


def _made() -> Cluster:
    try:
        return Cluster()
    except missing.Missing as lacking:
        if os.environ.get("CI"):
            pytest.fail(str(lacking), pytrace=False)
        pytest.skip(str(lacking))
