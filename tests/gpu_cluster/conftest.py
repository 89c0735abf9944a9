"""One cluster on this machine's own NVIDIA cards for the session (`make gpu-e2e`); a missing card fails the tests."""

import os
import uuid
from collections.abc import Iterator

import pytest

from cluster.gpu_machine.cluster import GpuMachineCluster
from cluster.programs import binaries
from cluster.programs.containerd import ContainerdMajor
from tests.e2e.made_cluster import make
from tests.gpu_cluster.gpu_namespace import GpuNamespace

LOGS = binaries.REPOSITORY / "build" / "gpu-e2e-logs"


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[GpuMachineCluster]:
    """A cluster with vgpushare on this machine's cards. Tests leave it as they found it."""
    major = ContainerdMajor(os.environ.get("VGPU_E2E_CONTAINERD", ContainerdMajor.PINNED))
    with make(pytestconfig, lambda: GpuMachineCluster(major)) as made:
        yield made
        made.save_logs(LOGS)


@pytest.fixture
def namespace(cluster: GpuMachineCluster) -> Iterator[GpuNamespace]:
    """A Kubernetes namespace for one test."""
    made = GpuNamespace(cluster, f"test-{uuid.uuid4().hex[:8]}")
    yield made
    made.close()
