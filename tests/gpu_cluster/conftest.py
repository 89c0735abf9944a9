"""One cluster on this machine's own NVIDIA cards for the session (`make gpu-e2e`); a missing card fails the tests."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.gpu_machine.cluster import GpuMachineCluster
from cluster.programs import binaries
from cluster.programs.containerd import ContainerdMajor
from tests.e2e.made_cluster import make
from tests.gpu_cluster.gpu_namespace import GpuNamespace
from tests.gpu_cluster.record import Sightings

LOGS = binaries.REPOSITORY / "build" / "gpu-e2e-logs"
RESULT = binaries.REPOSITORY / "build" / "gpu-e2e.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cluster with real cards")
    group.addoption("--rounds", type=int, default=1, help="run each test this many times in the one cluster")
    group.addoption("--json", type=Path, default=RESULT, help="write what is seen into this file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr") == "gpu_cluster":
        config.pluginmanager.register(Outcomes(Sightings(config.getoption("--json", RESULT))), Outcomes.__name__)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "round_number" in metafunc.fixturenames:
        metafunc.parametrize("round_number", range(metafunc.config.getoption("--rounds", 1)), ids="round{}".format)


class Outcomes:
    """Records how each test ended."""

    def __init__(self, seen: Sightings) -> None:
        self.seen = seen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.seen.outcome(_test(report), str(report.longreprtext).strip().splitlines()[-1])
        elif report.when == "call" and report.passed:
            self.seen.outcome(_test(report), "")


def _test(report: pytest.TestReport) -> str:
    """Return the name of a test without its round."""
    name, _, parameters = report.location[2].rstrip("]").partition("[")
    kept = [word for word in parameters.split("-") if word and not word.startswith("round")]
    return " ".join([name, *kept])


@pytest.fixture(scope="session")
def seen(pytestconfig: pytest.Config) -> Sightings:
    """The record of this run, for the figures that tests measure."""
    outcomes = pytestconfig.pluginmanager.get_plugin(Outcomes.__name__)
    assert isinstance(outcomes, Outcomes)
    return outcomes.seen


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[GpuMachineCluster]:
    """A cluster with vgpushare on this machine's cards. Tests leave it as they found it."""
    major = ContainerdMajor(os.environ.get("VGPU_E2E_CONTAINERD", ContainerdMajor.PINNED))
    with make(pytestconfig, lambda: GpuMachineCluster(major)) as made:
        yield made
        made.save_logs(LOGS)


@pytest.fixture
def namespace(cluster: GpuMachineCluster, round_number: int) -> Iterator[GpuNamespace]:
    """A Kubernetes namespace for one test in one round."""
    made = GpuNamespace(cluster, f"test-{round_number}-{uuid.uuid4().hex[:8]}")
    yield made
    made.close()
