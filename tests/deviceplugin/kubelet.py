"""A kubelet's device manager and pod-resources, over real sockets: what the plugin's answers lead to.

It follows pkg/kubelet/cm/devicemanager of Kubernetes 1.36, its traps included: the plugin is not asked for a preference
where all free devices are needed, init containers' devices are handed on, the end of an old stream disconnects whoever
is registered by then, init containers are never listed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from deviceplugin.kubelet.api import podresources_pb2 as resources
from vgpu import names, quantity, request
from vgpu.request import ContainerKind


class Rejected(Exception):
    """The pod is Failed: UnexpectedAdmissionError."""


@dataclass
class Client:
    """A registered plugin, and its devices as last sent."""

    channel: grpc.aio.Channel
    devices: dict[str, bool] = field(default_factory=dict)
    lists: int = 0

    async def call(self, method: str, message: Any, answer: Any) -> Any:
        call = self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=type(message).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return await call(message)

    @property
    def healthy(self) -> set[str]:
        return {each for each, is_healthy in self.devices.items() if is_healthy}


class Kubelet:
    """One node's kubelet; `start` and `stop` are its life, what it has given out survives."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients: dict[str, Client] = {}
        self.registrations: list[str] = []
        self.given: dict[str, dict[str, dict[str, frozenset[str]]]] = defaultdict(lambda: defaultdict(dict))
        self.answers: dict[tuple[str, str], api.ContainerAllocateResponse] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.preferences: list[list[str]] = []
        self.allocating = 0
        self.lists_in_flight = 0
        self.lists = 0
        self.is_silent = False
        self.gets_fail = False
        self._servers: list[grpc.aio.Server] = []
        self._streams: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Empty the directory of sockets, as the real one does, and listen."""
        registration = {"Register": _unary(self._register, api.RegisterRequest)}
        listing = {
            "List": _unary(self._list, resources.ListPodResourcesRequest),
            "Get": _unary(self._get, resources.GetPodResourcesRequest),
        }
        self._wipe()
        await self._serve(self.directory / "device-plugins" / "kubelet.sock", "v1beta1.Registration", registration)
        await self._serve(self.directory / "pod-resources" / "kubelet.sock", "v1.PodResourcesLister", listing)

    async def stop(self) -> None:
        """Die: every connection ends, the sockets stay as files."""
        for server in self._servers:
            await server.stop(None)
        for client in self.clients.values():
            await client.channel.close()
        await asyncio.gather(*self._streams, return_exceptions=True)
        self._servers, self.clients = [], {}

    async def end_stream(self, resource: str) -> None:
        """Let go of a plugin, as the end of an older stream makes the real one do."""
        await self.clients[resource].channel.close()

    async def admit(self, pod: dict[str, Any]) -> None:
        """Admit a pod: devices for each of its containers. Raises Rejected."""
        uid = pod["metadata"]["uid"]
        self.pods[uid] = pod
        reusable: dict[str, set[str]] = defaultdict(set)
        try:
            for _, kind, container in request.containers_of(pod):
                for resource, amount in _asked(container):
                    await self._allocate(uid, container["name"], resource, amount, reusable[resource])
                    mine = self.given[uid][container["name"]].get(resource, frozenset())
                    if kind is ContainerKind.INIT:
                        reusable[resource] |= mine
                    else:
                        reusable[resource] -= mine
        except (grpc.aio.AioRpcError, Rejected) as error:
            self.end(uid)
            raise Rejected(str(error)) from error

    async def start_container(self, pod: dict[str, Any], name: str = "main") -> None:
        """PreStartContainer, before each start of a container. Raises grpc's error with the plugin's text."""
        for resource, ids in self.given[pod["metadata"]["uid"]][name].items():
            message = api.PreStartContainerRequest(devices_ids=sorted(ids))
            await self.clients[resource].call("PreStartContainer", message, api.PreStartContainerResponse)

    def end(self, uid: str) -> None:
        """Forget a pod that has ended."""
        self.pods.pop(uid, None)
        self.given.pop(uid, None)

    def mount(self, pod: dict[str, Any], path: str, container: str = "main") -> Path:
        """Where on the host a container's file is."""
        answer = self.answers[pod["metadata"]["uid"], container]
        return next(Path(mount.host_path) for mount in answer.mounts if mount.container_path == path)

    def allocated(self, resource: str) -> set[str]:
        each = (held.get(resource, frozenset()) for pod in self.given.values() for held in pod.values())
        return set().union(*each)

    def _wipe(self) -> None:
        for name in ("device-plugins", "pod-resources"):
            place = self.directory / name
            place.mkdir(parents=True, exist_ok=True)
            for path in place.iterdir():
                if path.is_socket():
                    path.unlink()

    async def _allocate(self, uid: str, container: str, resource: str, amount: int, reusable: set[str]) -> None:
        client = self.clients.get(resource)
        if client is None or not client.healthy:
            raise Rejected(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        chosen = set(sorted(reusable)[:amount])
        available = client.healthy - self.allocated(resource)
        if len(available) < amount - len(chosen):
            raise Rejected(f"requested number of devices unavailable for {resource}")
        if 0 < amount - len(chosen) < len(available):
            preferred = await self._prefer(client, available | chosen, chosen, amount)
            chosen |= set(sorted(preferred & available)[: amount - len(chosen)])
        chosen |= set(sorted(available - chosen, reverse=True)[: amount - len(chosen)])
        self.allocating += 1
        try:
            message = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=sorted(chosen))])
            answer = await client.call("Allocate", message, api.AllocateResponse)
        finally:
            self.allocating -= 1
        self.given[uid][container][resource] = frozenset(chosen)
        self.answers[uid, container] = answer.container_responses[0]

    async def _prefer(self, client: Client, available: set[str], must: set[str], size: int) -> set[str]:
        message = api.PreferredAllocationRequest(
            container_requests=[
                api.ContainerPreferredAllocationRequest(
                    available_deviceIDs=sorted(available), must_include_deviceIDs=sorted(must), allocation_size=size
                )
            ]
        )
        answer = await client.call("GetPreferredAllocation", message, api.PreferredAllocationResponse)
        self.preferences.append(list(answer.container_responses[0].deviceIDs))
        await asyncio.sleep(0.001)
        return set(self.preferences[-1])

    async def _register(self, message: api.RegisterRequest, _: Any) -> api.Empty:
        self.registrations.append(message.resource_name)
        channel = grpc.aio.insecure_channel(f"unix:{self.directory / 'device-plugins' / message.endpoint}")
        client = self.clients[message.resource_name] = Client(channel)
        options = await client.call("GetDevicePluginOptions", api.Empty(), api.DevicePluginOptions)
        assert options == message.options
        stream = asyncio.create_task(self._listen(message.resource_name, client))
        self._streams.add(stream)
        stream.add_done_callback(self._streams.discard)
        return api.Empty()

    async def _listen(self, resource: str, client: Client) -> None:
        call = client.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=api.Empty.SerializeToString,
            response_deserializer=api.ListAndWatchResponse.FromString,
        )
        try:
            async for message in call(api.Empty()):
                client.devices = {each.ID: each.health == "Healthy" for each in message.devices}
                client.lists += 1
        except (grpc.aio.AioRpcError, asyncio.CancelledError, grpc.aio.UsageError):
            await asyncio.sleep(0.02)  # whoever registers before this is over is disconnected by it
            current = self.clients.pop(resource, None)
            if current is not None:
                await current.channel.close()

    async def _list(self, _: Any, context: Any) -> resources.ListPodResourcesResponse:
        self.lists += 1
        self.lists_in_flight += self.allocating > 0
        if self.is_silent:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        return resources.ListPodResourcesResponse(pod_resources=[self._listed(pod) for pod in self.pods.values()])

    async def _get(self, message: Any, context: Any) -> resources.GetPodResourcesResponse:
        if self.gets_fail:
            await context.abort(grpc.StatusCode.UNKNOWN, "PodResources API Get method disabled")
        for pod in self.pods.values():
            meta = pod["metadata"]
            if (meta["namespace"], meta["name"]) == (message.pod_namespace, message.pod_name):
                return resources.GetPodResourcesResponse(pod_resources=self._listed(pod))
        await context.abort(grpc.StatusCode.UNKNOWN, f"pod {message.pod_name} in namespace x not found")
        raise AssertionError

    def _listed(self, pod: dict[str, Any]) -> resources.PodResources:
        meta = pod["metadata"]
        containers = [
            resources.ContainerResources(
                name=container["name"],
                devices=[
                    resources.ContainerDevices(resource_name=resource, device_ids=sorted(ids))
                    for resource, ids in self.given[meta["uid"]][container["name"]].items()
                ],
            )
            for _, kind, container in request.containers_of(pod)
            if kind is not ContainerKind.INIT
        ]
        return resources.PodResources(name=meta["name"], namespace=meta["namespace"], containers=containers)

    async def _serve(self, path: Path, service: str, methods: dict[str, Any]) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._servers.append(server)


def _asked(container: Mapping[str, Any]) -> list[tuple[str, int]]:
    amounts = request.amounts(container)
    found = ((name, quantity.whole_number(amounts.get(name, "0"))) for name in names.KUBELET_RESOURCES)
    return [(name, amount) for name, amount in found if amount]


def _unary(method: Any, message: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        method, request_deserializer=message.FromString, response_serializer=lambda answer: answer.SerializeToString()
    )
