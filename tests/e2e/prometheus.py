"""A real Prometheus that scrapes every part of a cluster each second, with rules if wanted."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster import api, missing, parts, process, wait
from cluster.cluster import GpuCluster
from cluster.programs import prometheus

ADDRESS = "127.0.0.1:9090"
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: vgpushare
    static_configs:
      - targets: {targets}
"""


class Prometheus:
    """The process, and what it answers. `more` are targets that need not be up; `rules` are files of rules."""

    def __init__(
        self, cluster: GpuCluster, folder: Path, work: Path, rules: Sequence[Path] = (), more: Sequence[str] = ()
    ) -> None:
        ports = [f"{node.name}:{parts.METRICS_PORT}" for node in cluster.nodes]
        self.targets = ["127.0.0.1:9874", "127.0.0.1:9873", *ports]
        config = CONFIG.format(targets=json.dumps([*self.targets, *more]), rules=json.dumps(list(map(str, rules))))
        (work / "prometheus.yml").write_text(config)
        flags = [f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data"]
        command = [str(folder / "prometheus"), *flags, f"--web.listen-address={ADDRESS}"]
        self.process = process.ClusterProcess("prometheus", command, cluster.within, work)
        self._http = httpx.Client(transport=api.Transport(cluster.within, verify=False), timeout=5)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now."""
        answer = self._http.get(f"http://{ADDRESS}/api/v1/query", params={"query": expression}).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The value of an expression that has one series."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else None

    def has(self, expression: str, value: float) -> bool:
        """Whether an expression has one series with this value."""
        return self.value(expression) == value

    def fires(self, alert: str) -> bool:
        """Whether an alert fires now."""
        return bool(self.query(f'ALERTS{{alertname="{alert}",alertstate="firing"}}'))

    def text(self, target: str) -> str:
        """What a part serves."""
        return self._http.get(f"http://{target}/metrics").text

    def post(self, url: str, body: bytes, times: int = 1) -> None:
        """Send a request to a part, in the cluster's network."""
        for _ in range(times):
            self._http.post(url, content=body)

    def close(self) -> None:
        """End it."""
        self._http.close()
        self.process.stop()

    def are_all_up(self) -> bool:
        """Whether every part was scraped."""
        try:
            return self.value("sum(up)") == len(self.targets)
        except (httpx.TransportError, httpx.HTTPStatusError):  # 503 while it starts
            return False


@contextmanager
def scraping_all(
    cluster: GpuCluster, work: Path, rules: Sequence[Path] = (), more: Sequence[str] = ()
) -> Iterator[Prometheus]:
    """Run a Prometheus until the end of the statement's body; its first scrape has every part. Skips without one."""
    try:
        folder = prometheus.PROGRAMS.ensure()
    except missing.Missing as lacking:
        pytest.skip(str(lacking))
    made = Prometheus(cluster, folder, work, rules, more)
    made.process.start()
    try:
        wait.until(made.are_all_up, "Prometheus scrapes all parts", 30, [made.process])
        yield made
    finally:
        made.close()
