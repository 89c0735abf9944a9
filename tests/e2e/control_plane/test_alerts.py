"""A real Prometheus with the rules of manifests/monitoring scrapes the real parts: each alert fires for its fault.

The rules are those that are installed, but for `for`, which is 0 here: the unit tests of promtool check the times.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from cluster import wait
from cluster.cluster import GpuCluster
from tests.contract.monitoring import boards, rules
from tests.e2e.alert_faults import FAULTS, NEW_ADDRESS, SHORT_LIVED
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import PodNamespace, container, pod
from tests.e2e.prometheus import Prometheus, scraping_all

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500)]

FIRES_S = 60
LATE_S = 300  # a report is late after three minutes
PRICES = 'currency = "EUR"\n[card-hour]\ndefault = 2.0\n'


def at_once(source: Path, work: Path) -> Path:
    """A copy of a file of rules whose alerts fire without delay, and whose groups are evaluated each second."""
    document = yaml.safe_load(source.read_text())
    for group in document["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            if "alert" in rule:
                rule["for"] = "0s"
    made = work / source.name
    made.write_text(yaml.safe_dump(document))
    return made


@pytest.fixture(scope="module")
def scraping(cluster: GpuCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    work = tmp_path_factory.mktemp("prometheus")
    files = [at_once(source, work) for source in rules.SOURCES.values()]
    with scraping_all(cluster, work, files, [SHORT_LIVED, NEW_ADDRESS]) as made:
        yield made


def test_each_alert_has_a_fault() -> None:
    assert sorted(FAULTS) == sorted(rule["alert"] for rule in rules.alerts())


@pytest.mark.parametrize("alert", FAULTS)
def test_an_alert_fires_for_its_fault(alert: str, namespace: PodNamespace, scraping: Prometheus) -> None:
    namespace.until(lambda: not scraping.fires(alert), f"{alert} does not fire before", FIRES_S)
    with FAULTS[alert](namespace, scraping) as again:

        def fires() -> bool:
            again()
            return scraping.fires(alert)

        wait.until(fires, f"{alert} fires", LATE_S if alert == "VgpuReportsLate" else FIRES_S)


def expressions() -> Iterator[tuple[str, str]]:
    """Every query of every panel, with the variables as Grafana fills them in where all is chosen."""
    for board in boards.BOARDS:
        for panel in json.loads(board.text)["panels"]:
            for target in panel["targets"]:
                filled = target["expr"].replace("$__rate_interval", "1m")
                for variable in board.variables:
                    filled = filled.replace(f"${variable}", ".*")
                yield f"{board.uid}: {panel['title']}", filled


def test_every_query_of_every_panel_returns_data(
    cluster: GpuCluster, namespace: PodNamespace, scraping: Prometheus, tmp_path: Path
) -> None:
    """Two containers take turns on a card, and a pod waits."""
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    for name in ("a", "b"):
        spins = container(command=("gpuprobe", "spin", "100000"), gpu_mem=1024, gpu_cores=30)
        namespace.create(pod(name, spins, annotations=at(cluster.nodes[0])))
    namespace.create(pod("never", gpu_mem=900_000))
    namespace.running("a", "b")
    with cluster.extender_with(prices=str(prices)):
        empty: dict[str, str] = {}

        def have_data() -> bool:
            nonlocal empty
            try:
                empty = {title: query for title, query in expressions() if not is_data(scraping, query)}
            except httpx.TransportError:
                return False
            return not empty

        try:
            wait.until(have_data, "every query returns data", 90)
        except wait.Overdue as overdue:
            raise AssertionError(f"{overdue}: {json.dumps(empty, indent=1)}") from None


def is_data(scraping: Prometheus, query: str) -> bool:
    """Whether a query has a series with a number; raises where it is malformed."""
    return any(series["value"][1] != "NaN" for series in scraping.query(query))


@pytest.mark.parametrize("board", boards.BOARDS, ids=lambda board: board.uid)
def test_every_variable_has_values(board: boards.Board, namespace: PodNamespace, scraping: Prometheus) -> None:
    namespace.create(pod("runs", gpu_mem=1024))
    namespace.running("runs")
    for name, query in board.variables.items():
        selector, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        for variable in board.variables:
            selector = selector.replace(f"${variable}", ".*")
        namespace.until(lambda: scraping.query(f"count by ({label}) ({selector})"), f"values of {name}", 30)  # noqa: B023 - it is called at once
