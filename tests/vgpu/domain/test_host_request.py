"""CPU and memory that pods request, as kube-scheduler counts them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.domain.asks import host_request
from vgpu.domain.asks.host_request import HostRequest


@pytest.mark.parametrize(
    ("text", "thousandths"),
    [("2", 2000), ("500m", 500), ("0.5", 500), ("1.5Gi", 1536 << 20), ("1e3", 10**6), ("100u", 1), ("18k", 18 * 10**6)],
)
def test_quantities(text: str, thousandths: int) -> None:
    assert host_request.thousandths(text) == thousandths * (1000 if text.endswith("Gi") else 1)


@given(st.text(max_size=12) | st.sampled_from(["-1", "1e99", "9" * 40, "1 Gi", "٣"]))
def test_any_text_is_bounded(text: str) -> None:
    found = host_request.of_node({"cpu": text, "memory": text})
    assert 0 <= found.cpu_milli <= host_request.MAX_CPU_MILLI
    assert 0 <= found.memory_mib <= host_request.MAX_MEMORY_MIB


def container(cpu: str, memory: str = "0", restart: str | None = None) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, "restartPolicy": restart}


def test_init_containers_run_before_and_sidecars_beside_the_containers() -> None:
    spec = {
        "initContainers": [container("3"), container("500m", restart="Always"), container("2")],
        "containers": [container("1", "1Gi"), container("1")],
        "overhead": {"cpu": "250m", "memory": "64Mi"},
    }
    assert host_request.of_pod(spec) == HostRequest(3250, 1088)
    assert host_request.of_pod({"initContainers": [container("1", restart="Always")]}).cpu_milli == 1000
    assert host_request.of_pod({"containers": [{"resources": None}, {}]}) == host_request.NOTHING


def test_a_limit_is_requested_where_nothing_else_is() -> None:
    resources = {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "500m"}}
    assert host_request.of_pod({"containers": [{"resources": resources}]}) == HostRequest(500, 2048)
    assert host_request.of_pod({"containers": [{"resources": {"limits": "x", "requests": 3}}]}) == host_request.NOTHING
