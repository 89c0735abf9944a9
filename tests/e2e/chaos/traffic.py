"""Pods that come and go while parts are broken; a refused or lost request is no error here, a lost pod is.

Together they take at most half of the cards, so that every pod must run once everything is normal.
"""

import itertools
import random
import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, Final, Self

import httpx

from cluster import api
from tests.e2e import churn
from tests.e2e.chaos.chaos_cluster import ChaosCluster
from tests.e2e.monitor import json_depth
from vgpu.domain import names

NAMESPACE: Final = "chaos"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
MOST_PODS: Final = 24
_PERIOD_S: Final = 0.6
FAILURES: Final = (api.RequestRefused, httpx.HTTPError, OSError)

Document = dict[str, Any]


class Traffic:
    """A thread that creates a pod every 0.6 s and deletes the oldest; `pause` lets the pods stay as they are."""

    def __init__(self, cluster: ChaosCluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._running = threading.Event()
        self._ended = threading.Event()
        self._names: deque[str] = deque()
        self._thread = threading.Thread(target=self._run)
        self.accepted = 0

    def __enter__(self) -> Self:
        if self._cluster.api.find(f"/api/v1/namespaces/{NAMESPACE}") is None:
            self._cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self._running.set()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._running.set()
        self._thread.join()

    def pause(self) -> None:
        """Create and delete nothing until `go_on`."""
        self._running.clear()
        time.sleep(2 * _PERIOD_S)

    def go_on(self) -> None:
        self._running.set()

    def _run(self) -> None:
        for number in itertools.count():
            self._running.wait()
            if self._ended.wait(_PERIOD_S):
                return
            self._create(f"c{number}")
            if len(self._names) > MOST_PODS and attempt(self._cluster, "DELETE", f"{PODS}/{self._names[0]}"):
                self._names.popleft()

    def _create(self, name: str) -> None:
        manifest = churn.small(name, gpu_mem=256 * self._chance.randint(1, 32), gpu_cores=self._chance.randint(1, 6))
        manifest["metadata"]["annotations"] = {names.NODE_POLICY: "spread", names.GPU_POLICY: "spread"}
        if attempt(self._cluster, "POST", PODS, manifest):
            self._names.append(name)
            self.accepted += 1


def attempt(cluster: ChaosCluster, method: str, path: str, body: Document | None = None) -> bool:
    """Send a request; whether it succeeded, or what it deletes is gone."""
    try:
        cluster.api.request(method, path, body)
    except api.RequestRefused as refused:
        return refused.status == httpx.codes.NOT_FOUND
    except (httpx.HTTPError, OSError):
        return False
    return True


def pods(cluster: ChaosCluster) -> list[Document] | None:
    """Return every pod of the traffic; None where the API server does not say."""
    try:
        found: list[Document] = json_depth.loads(cluster.api.text(PODS).encode())["items"]
    except FAILURES:
        return None
    return found


def gpunodes(cluster: ChaosCluster) -> list[Document] | None:
    """Return every GPUNode; None where the API server does not say."""
    try:
        found: list[Document] = cluster.api.get(names.GPUNODES_PATH)["items"]
    except FAILURES:
        return None
    return found
