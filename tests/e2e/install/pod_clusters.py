"""Makes a cluster in which all parts are pods, and keeps its logs."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pytest

from cluster.pod_cluster import PodCluster
from cluster.programs import binaries
from tests.e2e.made_cluster import make

Made = TypeVar("Made", bound=PodCluster)


@contextmanager
def make_with_logs(
    config: pytest.Config, name: str, build: Callable[[], AbstractContextManager[Made]]
) -> Iterator[Made]:
    """Run a cluster inside the block, as `make` does; save its logs and those of its containers under a name."""
    with make(config, build) as made:
        try:
            yield made
        finally:
            _save_logs(made, name)


def _save_logs(cluster: PodCluster, name: str) -> None:
    target = binaries.REPOSITORY / "build" / f"e2e-logs-{name}"
    cluster.save_logs(target)
    for node in cluster.nodes:
        shutil.copytree(node.work / "log" / "pods", target / node.work.name)
