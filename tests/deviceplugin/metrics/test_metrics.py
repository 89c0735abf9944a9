"""The plugin's metrics over HTTP, without the API server."""

import asyncio
import socket
import subprocess
import threading
import time

import httpx
import pytest

from cluster.programs import prometheus
from tests.deviceplugin.conftest import World, settings_of
from tests.deviceplugin.test_uninvited import ID, use, with_status
from tests.strategies import container
from tests.vgpu.node.builders import sidecar, uuid
from vgpu.adapters.nvml.records import BusySamples
from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import MIB

COMPLETED: JsonObject = {"terminated": {"exitCode": 0}}


@pytest.fixture
async def served(idle_world: World) -> str:
    """Start a plugin that serves its metrics; return their URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    changes = {"metrics_listen": address, "dcgm_names": True, "usage_period": 5.0}
    idle_world.settings = settings_of(**{**idle_world.settings.model_dump(), **changes})
    idle_world.start_plugin()
    await idle_world.until_registered()
    return f"http://{address}/metrics"


async def scraped(url: str, accept: str = "text/plain") -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.get(url, headers={"accept": accept})
    assert answer.status_code == 200, answer.text
    return answer.text


async def has(url: str, *texts: str) -> bool:
    try:
        found = await scraped(url)
    except httpx.TransportError:
        return False
    return all(text in found for text in texts)


@pytest.mark.heavy
async def test_a_containers_memory_is_that_of_its_limits_and_of_nvml(idle_world: World, served: str) -> None:
    pod = await idle_world.run("p", container("main", gpu_mem=512))
    await with_status(idle_world, "p", main=ID)
    use(idle_world, 0, pod)
    idle_world.driver.memory[4711] = 100 * MIB
    card = f'gpu_index="0",gpu_uuid="{uuid(0)}",model="NVIDIA H100"'
    labels = f'{{container="main",{card},namespace="default",node="n1",pod="p"}}'
    limit = f"vgpu_container_memory_limit_bytes{labels} 5.36870912e+08"
    counted = f"vgpu_container_memory_nvml_bytes{labels} 1.048576e+08"
    await idle_world.until(lambda: has(served, limit, counted, "vgpu_node_registered"))
    await idle_world.end(pod)
    await idle_world.until(lambda: has_not(served, "vgpu_container_memory_limit_bytes{"))


@pytest.mark.heavy
async def test_a_card_that_is_held_whole_has_all_its_slices_held(idle_world: World, served: str) -> None:
    """The sum over cards is then what is allocated."""
    await idle_world.run("p", container("main", gpu=1), gpus=0)
    labels = f'{{gpu_index="0",gpu_uuid="{uuid(0)}",model="NVIDIA H100",node="n1"}}'
    held = f"vgpu_card_held_slices{labels} 8", f"vgpu_card_held_whole{labels} 1"
    await idle_world.until(lambda: has(served, *held))


@pytest.mark.heavy
async def test_a_process_that_has_ended_counts_no_more_before_nvml_is_asked_again(
    idle_world: World, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = await idle_world.run("p", container("main", gpu_mem=512))
    await with_status(idle_world, "p", main=ID)
    use(idle_world, 0, pod)
    idle_world.driver.memory[4711] = 100 * MIB
    await idle_world.until(lambda: has(served, 'vgpu_container_processes{container="main"', " 1.048576e+08"))
    asked, released = threading.Event(), threading.Event()

    def hang(gpus: object) -> dict[CardUuid, dict[int, int | None]]:
        del gpus
        asked.set()
        released.wait(20)
        return {}

    monkeypatch.setattr(idle_world.driver, "processes", hang)
    await idle_world.until(asked.is_set)
    try:
        assert " 1.048576e+08" in await scraped(served)
        del idle_world.processes[4711]
        await idle_world.until(
            lambda: has_not(served, " 1.048576e+08"), within_s=2
        )  # an answer is a second old at most
    finally:
        released.set()


@pytest.mark.heavy
async def test_the_limits_of_a_cards_containers_do_not_exceed_the_card(idle_world: World, served: str) -> None:
    """PreStartContainer proves the containers of a chain at once, and allocations stay until the pod ends."""
    inits = (sidecar("side", gpu_mem=256), container("first", gpu_mem=700), container("second", gpu_mem=700))
    pod = await idle_world.run("p", container("one", gpu_mem=512), container("two", gpu_mem=200), init=inits)
    await idle_world.until(lambda: lists(served, {"side", "first"}))
    await idle_world.set_status(pod, {"initContainerStatuses": [{"name": "first", "state": COMPLETED}]})
    await idle_world.until(lambda: lists(served, {"side", "second"}))
    ended = [{"name": "first", "state": COMPLETED}, {"name": "second", "state": {"terminated": {"exitCode": 1}}}]
    await idle_world.set_status(pod, {"initContainerStatuses": ended})
    await idle_world.until(lambda: lists(served, {"side", "second"}))
    ended = [{"name": name, "state": COMPLETED} for name in ("first", "second")]
    await idle_world.set_status(pod, {"initContainerStatuses": ended})
    await idle_world.until(lambda: lists(served, {"side", "one", "two"}))
    assert sum(await limits_of(served)) == (256 + 512 + 200) * MIB


async def lists(url: str, containers: set[str]) -> bool:
    """Whether these containers, and no others, have a limit."""
    lines = (await scraped(url)).split("\n")
    found = [line for line in lines if line.startswith("vgpu_container_memory_limit_bytes{")]
    return {line.partition('container="')[2].partition('"')[0] for line in found} == containers


async def limits_of(url: str) -> list[float]:
    lines = (await scraped(url)).split("\n")
    return [float(line.split()[-1]) for line in lines if line.startswith("vgpu_container_memory_limit_bytes{")]


@pytest.mark.heavy
async def test_a_process_that_nvml_does_not_list_counts_for_the_container_of_its_cgroup(
    idle_world: World, served: str
) -> None:
    """A process that holds no memory is in NVML's samples alone."""
    pod = await idle_world.run("p", container("main", gpu_mem=512))
    await with_status(idle_world, "p", main=ID)
    use(idle_world, 0, pod)
    idle_world.driver.users.clear()
    await idle_world.until(lambda: has(served, 'vgpu_container_sampled_seconds_total{container="main"'))
    ended_us = int((time.time() + 5) * 1e6)
    idle_world.driver.samples[uuid(0)] = BusySamples((), ((4711, ended_us, 0.5),))
    await idle_world.until(lambda: counts(served, "vgpu_container_gpu_seconds_total{"))
    assert not await counts(served, "vgpu_card_others_seconds_total{")


async def counts(url: str, name: str) -> bool:
    """Whether a series of a name is above 0."""
    return any(line.startswith(name) and float(line.split()[-1]) > 0 for line in (await scraped(url)).split("\n"))


@pytest.mark.heavy
async def test_a_container_of_a_synthetic_load_is_marked_as_long_as_the_pod_has_the_label(
    idle_world: World, served: str
) -> None:
    pod = await idle_world.run("load", container("main", gpu_mem=512))
    await idle_world.run("job", container("main", gpu_mem=512))
    await idle_world.until(lambda: has(served, 'pod="job"', 'pod="load"'))
    assert await has_not(served, "vgpu_container_synthetic{")
    await labelled(idle_world, pod, "true")
    await idle_world.until(lambda: has(served, "vgpu_container_synthetic{"))
    (series,) = (line for line in (await scraped(served)).split("\n") if line.startswith("vgpu_container_synthetic{"))
    assert series.endswith('namespace="default",node="n1",pod="load"} 1.0')
    await labelled(idle_world, pod, None)
    await idle_world.until(lambda: has_not(served, "vgpu_container_synthetic{"))


async def labelled(idle_world: World, pod: JsonObject, value: str | None) -> None:
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    await idle_world.client.patch(path, {"metadata": {"labels": {names.SYNTHETIC: value}}})


async def has_not(url: str, text: str) -> bool:
    return text not in await scraped(url)


async def test_prometheus_tool_has_nothing_to_say(idle_world: World, served: str) -> None:
    if not prometheus.PROGRAMS.is_built():
        pytest.skip("promtool is not built: python -m cluster.programs.prometheus")
    await idle_world.run("p", container("main", gpu_mem=512))
    await idle_world.until(lambda: has(served, "vgpu_container_memory_limit_bytes{"))
    text = await scraped(served)
    own = "\n".join(line for line in text.split("\n") if "DCGM_" not in line) + "\n"
    command = [str(prometheus.PROGRAMS.folder / "promtool"), "check", "metrics"]
    done = await asyncio.to_thread(subprocess.run, command, input=own, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_openmetrics_is_served_on_demand_and_other_paths_are_not(idle_world: World, served: str) -> None:
    await idle_world.until(lambda: has(served, "vgpu_node_info"))
    assert (await scraped(served, "application/openmetrics-text; version=1.0.0")).endswith("# EOF\n")
    async with httpx.AsyncClient() as client:
        assert (await client.get(served.replace("metrics", "other"))).status_code == 404
        assert (await client.post(served)).status_code == 404


async def test_a_card_that_does_not_answer_takes_nothing_from_the_others(idle_world: World, served: str) -> None:
    idle_world.driver.silent.add(uuid(0))
    await idle_world.until(lambda: has(served, f'vgpu_card_power_watts{{gpu_index="1",gpu_uuid="{uuid(1)}"'))
    assert f'vgpu_card_power_watts{{gpu_index="0",gpu_uuid="{uuid(0)}"' not in await scraped(served)
