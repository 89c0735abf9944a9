"""The relay between the kubelet and the process that serves it, which is killed and replaced."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from deviceplugin.kubelet.messages import ContainerResponse, Device
from deviceplugin.kubelet.registration import ListAndWatchStreams, Registration
from deviceplugin.kubelet.relay import Relay
from deviceplugin.kubelet.server import ResourceServer, Service
from deviceplugin.settings import SOCKETS
from tests.deviceplugin.kubelet import Kubelet
from vgpu.domain import names

NOW = 7.0
DEVICES = (Device("gpu::0", healthy=True), Device("gpu::1", healthy=True))
ASKED = api.AllocateRequest(container_requests=[{"devices_ids": ["gpu::0"]}])
PREFERRED = api.PreferredAllocationRequest(
    container_requests=[{"available_deviceIDs": ["gpu::0", "gpu::1"], "allocation_size": 1}]
)


@dataclass
class Serving:
    """A process that serves, as far as the relay sees it. `loses_answers`: those of Allocate are never sent."""

    directory: Path
    name: str
    loses_answers: bool = False
    calls: list[Any] = field(default_factory=list)

    async def start(self) -> None:
        self.streams = {resource: ListAndWatchStreams() for resource in SOCKETS}
        self.servers, self.tasks = [], []
        for resource, socket in SOCKETS.items():
            stream = self.streams[resource]
            server = ResourceServer(self.directory / socket, LosingService(resource, self, self, stream).handlers())
            registration = Registration(self.directory, resource, socket, stream, server.ensure)
            self.servers.append(server)
            self.tasks.append(asyncio.create_task(registration.run()))

    async def kill(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*(server.stop(grace_s=None) for server in self.servers))

    def of(self, _: str) -> tuple[Device, ...]:
        return DEVICES

    async def wait(self) -> None:
        await asyncio.Event().wait()

    async def prefer(self, _: str, available: Collection[str], must: Collection[str], size: int) -> list[str]:
        self.calls.append(("prefer", size))
        return sorted({*must, *available})[:size]

    def allocate(self, _: str, ids: frozenset[str], first_sent: float | None) -> ContainerResponse:
        self.calls.append(("allocate", sorted(ids), first_sent))
        return ContainerResponse(envs={"BY": self.name}, mounts=(), device_nodes=(), cdi_devices=())

    async def prove(self, _: str, ids: frozenset[str]) -> object | None:
        return f"refused: {sorted(ids)}"


class LosingService(Service):
    """The calls of a resource, whose answers may be lost with the process."""

    async def allocate(self, request: api.AllocateRequest, context: Any) -> api.AllocateResponse:
        answer = await super().allocate(request, context)
        if isinstance(self._verbs, Serving) and self._verbs.loses_answers:
            await asyncio.Event().wait()
        return answer


@dataclass
class Relayed:
    """A kubelet, a relay, and where processes serve."""

    kubelet: Kubelet
    relay: Relay
    directory: Path

    def serving(self, name: str, **fields: Any) -> Serving:
        return Serving(self.directory, name, **fields)

    async def until_registered(self) -> None:
        clients = self.kubelet.clients
        await until(lambda: len(clients) == 2 and all(client.devices for client in clients.values()))

    async def allocate(self) -> str:
        """Allocate a slice, and return the name of the process that has answered."""
        answer = await self.kubelet.clients[names.SLICE].call("Allocate", ASKED, api.AllocateResponse)
        return str(answer.container_responses[0].envs["BY"])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
async def relayed() -> AsyncIterator[Relayed]:
    with tempfile.TemporaryDirectory(prefix="vgpu-") as folder:
        for name in ("device-plugins", "pod-resources"):
            (Path(folder) / name).mkdir()
        kubelet, here = Kubelet(Path(folder)), Path(folder) / "relay"
        await kubelet.start()
        relay = Relay(Path(folder) / "device-plugins", here, SOCKETS, lambda: NOW)
        async with relay.running():
            yield Relayed(kubelet, relay, here)
            await kubelet.stop()


@pytest.fixture
async def first(relayed: Relayed) -> AsyncIterator[Serving]:
    """A process that serves the kubelet."""
    serving = relayed.serving("first")
    await serving.start()
    await relayed.until_registered()
    yield serving
    await serving.kill()


async def replaced(relayed: Relayed, serving: Serving) -> Serving:
    """Kill a process, and start the next one."""
    await serving.kill()
    relayed.relay.ended()
    following = relayed.serving("next")
    await following.start()
    return following


async def test_the_kubelets_streams_outlive_the_process(relayed: Relayed, first: Serving) -> None:
    following = await replaced(relayed, first)
    slices = relayed.kubelet.clients[names.SLICE]
    await until(lambda: slices.lists == 2)  # the list of the next process came over the same stream
    assert slices.healthy == {"gpu::0", "gpu::1"}
    assert sorted(relayed.kubelet.registrations) == [names.CARD, names.SLICE]
    assert await relayed.allocate() == "next"
    await following.kill()


async def test_a_call_waits_while_no_process_serves(relayed: Relayed, first: Serving) -> None:
    await first.kill()
    relayed.relay.ended()
    waits = asyncio.create_task(relayed.allocate())
    await asyncio.sleep(0.3)
    assert not waits.done()
    following = relayed.serving("next")
    await following.start()
    assert await asyncio.wait_for(waits, 10) == "next"
    assert [call[0] for call in following.calls] == ["allocate"]
    await following.kill()


async def test_a_call_whose_answer_was_lost_is_sent_again_with_the_preference_before_it(
    relayed: Relayed, first: Serving
) -> None:
    first.loses_answers = True
    await relayed.kubelet.clients[names.SLICE].call(
        "GetPreferredAllocation", PREFERRED, api.PreferredAllocationResponse
    )
    waits = asyncio.create_task(relayed.allocate())
    await until(lambda: len(first.calls) == 2)
    following = await replaced(relayed, first)
    assert await asyncio.wait_for(waits, 10) == "next"
    assert first.calls == [("prefer", 1), ("allocate", ["gpu::0"], None)]
    assert following.calls == [("prefer", 1), ("allocate", ["gpu::0"], NOW)]
    await relayed.allocate()
    assert following.calls[2:] == [("allocate", ["gpu::0"], None)]
    await following.kill()


@pytest.mark.usefixtures("first")
async def test_a_refusal_reaches_the_kubelet(relayed: Relayed) -> None:
    request = api.PreStartContainerRequest(devices_ids=["gpu::1"])
    with pytest.raises(grpc.aio.AioRpcError, match="refused: \\['gpu::1'\\]") as caught:
        await relayed.kubelet.clients[names.SLICE].call("PreStartContainer", request, api.PreStartContainerResponse)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_the_streams_of_the_process_end_with_the_kubelets(relayed: Relayed, first: Serving) -> None:
    """The process releases the node's Lease then."""
    assert all(stream.is_live for stream in first.streams.values())
    await relayed.kubelet.stop()
    await until(lambda: not any(stream.is_live for stream in first.streams.values()))
    await relayed.kubelet.start()
    await relayed.until_registered()
    await until(lambda: all(stream.is_live for stream in first.streams.values()))


async def test_a_kubelet_that_starts_while_no_process_serves_gets_no_empty_list(
    relayed: Relayed, first: Serving
) -> None:
    await first.kill()
    relayed.relay.ended()
    await relayed.kubelet.stop()
    before = len(relayed.kubelet.registrations)
    await relayed.kubelet.start()
    await asyncio.sleep(0.3)
    assert len(relayed.kubelet.registrations) == before
    following = relayed.serving("next")
    await following.start()
    await relayed.until_registered()
    await following.kill()


async def test_what_is_relayed_ends_with_the_relay(relayed: Relayed) -> None:
    """A call that waits for a process that never comes fails when the relay ends, instead of blocking the kubelet."""
    here = relayed.directory.parent / "other"
    relay = Relay(relayed.directory.parent / "device-plugins", here, {names.SLICE: "other.sock"}, lambda: 0.0)
    serving = relayed.serving("one")
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(relay.running())
        stream = ListAndWatchStreams()
        server = ResourceServer(here / "other.sock", Service(names.SLICE, serving, serving, stream).handlers())
        registering = asyncio.create_task(Registration(here, names.SLICE, "other.sock", stream, server.ensure).run())
        await until(lambda: names.SLICE in relayed.kubelet.clients)
        registering.cancel()
        await server.stop(grace_s=None)
        relay.ended()
        waits = asyncio.create_task(relayed.allocate())
        await asyncio.sleep(0.1)
        assert not waits.done()
    with pytest.raises(grpc.aio.AioRpcError):
        await asyncio.wait_for(waits, 10)
