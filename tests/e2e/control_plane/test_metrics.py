"""Metrics on the real cluster, scraped by a real Prometheus, against their sources."""

import re
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cluster.programs import binaries, prometheus
from simgpu import usage
from tests.e2e.node.test_node_files import at
from tests.e2e.pod_namespace import FOREVER, PodNamespace, container, pod
from tests.e2e.prometheus import Prometheus, scraping_all
from vgpu.domain.quantity import MIB

pytestmark = pytest.mark.e2e


@pytest.fixture
def scraping(namespace: PodNamespace, tmp_path: Path) -> Iterator[Prometheus]:
    with scraping_all(namespace.cluster, tmp_path) as made:
        yield made


def test_prometheus_scrapes_all_parts_and_each_figure_is_that_of_its_source(
    namespace: PodNamespace, scraping: Prometheus
) -> None:
    node = namespace.cluster.nodes[0]
    holds = container(command=("gpuprobe", "alloc", "512", "--hold", "0"), gpu_mem=1024, gpu_cores=30)
    namespace.create(pod("holds", holds, annotations=at(node)))
    namespace.create(pod("never", gpu_mem=900_000))
    namespace.running("holds")
    labels = f'{{namespace="{namespace.name}",pod="holds",container="main",gpu_uuid="{node.cards[0].uuid}"}}'
    wanted = {
        f"vgpu_container_memory_limit_bytes{labels}": 1024 * MIB,
        f"vgpu_container_memory_used_bytes{labels}": 512 * MIB,
        f"vgpu_container_memory_nvml_bytes{labels}": 512 * MIB,
        f"vgpu_container_cores_ratio{labels}": 0.3,
        f"vgpu_container_processes{labels}": 1,
        f'vgpu_card_held_slices{{gpu_uuid="{node.cards[0].uuid}"}}': 4,
        "sum(vgpu_card_healthy)": 8,
        "sum(vgpu_node_arbiter_up)": 2,
        "vgpu_extender_leader": 1,
        'vgpu_extender_objects{kind="gpunodes"}': 2,
    }
    for expression, value in wanted.items():
        namespace.until(partial(scraping.has, expression, value), f"{expression} {value}", 30)
    used = usage.bytes_by_card(node.driver_state)[node.cards[0].uuid]
    assert scraping.value(f'sum(vgpu_container_memory_nvml_bytes{{gpu_uuid="{node.cards[0].uuid}"}})') == used
    namespace.until(lambda: scraping.value('vgpu_extender_unplaced_total{reason="CardTooSmall"}'), "counted", 30)
    assert (scraping.value('vgpu_webhook_reviews_total{outcome="changed"}') or 0) >= 2
    assert (scraping.value('vgpu_extender_verb_seconds_count{verb="bind"}') or 0) >= 1


def test_promtool_has_nothing_to_say_about_any_part(scraping: Prometheus) -> None:
    for target in scraping.targets:
        command = [str(prometheus.PROGRAMS.folder / "promtool"), "check", "metrics"]
        done = subprocess.run(command, input=scraping.text(target), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), target


def use_of_a_share() -> str:
    """The expression that the documents give to autoscalers, over ten seconds."""
    page = (binaries.REPOSITORY / "docs" / "other-tools.md").read_text()
    (found,) = re.findall(r"^```text\n(sum by .*vgpu_container_cores_ratio.*)\n```$", page, re.MULTILINE)
    assert found.count("[2m]") == 1
    return str(found).replace("[2m]", "[10s]")


def test_the_metric_of_autoscalers_is_one_where_a_pod_uses_its_share(
    namespace: PodNamespace, scraping: Prometheus
) -> None:
    for name, command in {"busy": ("gpuprobe", "spin", "100000"), "waits": FOREVER}.items():
        namespace.create(pod(name, container(command=command, gpu_mem=1024, gpu_cores=30)))
    namespace.running("busy", "waits")

    def uses() -> dict[str, float]:
        found = scraping.query(use_of_a_share())
        ours = (series for series in found if series["metric"]["namespace"] == namespace.name)
        return {series["metric"]["pod"]: float(series["value"][1]) for series in ours}

    namespace.until(lambda: 0.8 < uses().get("busy", 0) < 1.2 and uses().get("waits") == 0, "1 and 0", 60)


def test_the_gpu_seconds_of_containers_add_up_to_what_they_used(namespace: PodNamespace, scraping: Prometheus) -> None:
    """Two containers with 30 and 60 percent keep a card busy for ten seconds."""
    node = namespace.cluster.nodes[0]
    for name, cores in {"a": 30, "b": 60}.items():
        spins = container(command=("gpuprobe", "spin", "1000"), gpu_mem=1024, gpu_cores=cores)
        namespace.create(pod(name, spins, annotations=at(node, 1)))
    namespace.running("a", "b")
    expression = 'vgpu_container_gpu_seconds_total{namespace="%s",pod="%s"}'
    queries = {name: expression % (namespace.name, name) for name in ("a", "b")}
    namespace.until(
        lambda: all((scraping.value(query) or 0) > 1 for query in queries.values()), "GPU time is counted", 60
    )
    before, began = {name: scraping.value(query) or 0 for name, query in queries.items()}, time.monotonic()
    time.sleep(10)
    after, took = {name: scraping.value(query) or 0 for name, query in queries.items()}, time.monotonic() - began
    shares = {name: (after[name] - before[name]) / took for name in queries}
    assert shares == pytest.approx({"a": 0.3, "b": 0.6}, abs=0.08)
