"""A fake of the kubelet's device manager and pod-resources service, over real sockets.

The fake follows pkg/kubelet/cm/devicemanager of Kubernetes 1.36, with its unexpected behaviour:

- GetPreferredAllocation is not called where a container needs all free devices.
- Later containers get the devices of an init container that has ended.
- The end of an old stream disconnects the plugin that is registered by then.
- Init containers are never listed.
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
from vgpu.domain import names, quantity
from vgpu.domain.asks import request
from vgpu.domain.asks.request import ContainerKind


class Rejected(Exception):
    """The kubelet refused the pod: it is Failed with the reason UnexpectedAdmissionError."""


@dataclass
class Client:
    """A registered plugin, and its last list of devices: whether each ID is healthy."""

    channel: grpc.aio.Channel
    devices: dict[str, bool] = field(default_factory=dict)
    lists: int = 0

    async def call(self, method: str, message: Any, response: Any) -> Any:
        call = self.channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=type(message).SerializeToString,
            response_deserializer=response.FromString,
        )
        return await call(message)

    @property
    def healthy(self) -> set[str]:
        return {device for device, is_healthy in self.devices.items() if is_healthy}


class Kubelet:
    """One node's kubelet; its allocations survive `stop` and `start`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clients: dict[str, Client] = {}
        self.registrations: list[str] = []
        self.allocations: dict[str, dict[str, dict[str, frozenset[str]]]] = defaultdict(lambda: defaultdict(dict))
        self.responses: dict[tuple[str, str], api.ContainerAllocateResponse] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.preferences: list[list[str]] = []
        self.allocating = 0
        self.lists_in_flight = 0
        self.lists = 0
        self.lists_fail = False
        self.gets_fail = False
        self.others: dict[str, list[str]] = {}
        self._servers: list[grpc.aio.Server] = []
        self._streams: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Remove the sockets in the directory, as the real kubelet does, and listen."""
        registration = {"Register": _unary(self._register, api.RegisterRequest)}
        listing = {
            "List": _unary(self._list, resources.ListPodResourcesRequest),
            "Get": _unary(self._get, resources.GetPodResourcesRequest),
            "GetAllocatableResources": _unary(self._offered, resources.AllocatableResourcesRequest),
        }
        self._wipe()
        await self._serve(self.directory / "device-plugins" / "kubelet.sock", "v1beta1.Registration", registration)
        await self._serve(self.directory / "pod-resources" / "kubelet.sock", "v1.PodResourcesLister", listing)

    async def stop(self) -> None:
        """End every connection; the sockets stay as files."""
        for server in self._servers:
            await server.stop(None)
        for client in self.clients.values():
            await client.channel.close()
        await asyncio.gather(*self._streams, return_exceptions=True)
        self._servers, self.clients = [], {}

    async def end_stream(self, resource: str) -> None:
        """Disconnect a plugin, as the real kubelet does when an older stream of the plugin ends."""
        await self.clients[resource].channel.close()

    async def admit(self, pod: dict[str, Any]) -> None:
        """Allocate devices to each container of a pod. Raises Rejected."""
        uid = pod["metadata"]["uid"]
        self.pods[uid] = pod
        reusable: dict[str, set[str]] = defaultdict(set)
        try:
            for _, kind, container in request.containers_of(pod):
                for resource, amount in _requested(container):
                    await self._allocate(uid, container["name"], resource, amount, reusable[resource])
                    ids = self.allocations[uid][container["name"]].get(resource, frozenset())
                    if kind is ContainerKind.INIT:
                        reusable[resource] |= ids
                    else:
                        reusable[resource] -= ids
        except (grpc.aio.AioRpcError, Rejected) as error:
            self.end(uid)
            raise Rejected(str(error)) from error

    async def start_container(self, pod: dict[str, Any], name: str = "main") -> None:
        """Call PreStartContainer, as before each start of a container. Raises AioRpcError with the plugin's text."""
        for resource, ids in self.allocations[pod["metadata"]["uid"]][name].items():
            message = api.PreStartContainerRequest(devices_ids=sorted(ids))
            await self.clients[resource].call("PreStartContainer", message, api.PreStartContainerResponse)

    def end(self, uid: str) -> None:
        """Remove a pod that has ended, and free its devices."""
        self.pods.pop(uid, None)
        self.allocations.pop(uid, None)

    def mount(self, pod: dict[str, Any], path: str, container: str = "main") -> Path:
        """Path on the host of a file that is mounted into a container."""
        response = self.responses[pod["metadata"]["uid"], container]
        return next(Path(mount.host_path) for mount in response.mounts if mount.container_path == path)

    def allocated(self, resource: str) -> set[str]:
        """IDs of a resource that belong to containers."""
        containers = (container for pod in self.allocations.values() for container in pod.values())
        return set().union(*(container.get(resource, frozenset()) for container in containers))

    def _wipe(self) -> None:
        for name in ("device-plugins", "pod-resources"):
            folder = self.directory / name
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():
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
            response = await client.call("Allocate", message, api.AllocateResponse)
        finally:
            self.allocating -= 1
        self.allocations[uid][container][resource] = frozenset(chosen)
        self.responses[uid, container] = response.container_responses[0]

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
                client.devices = {device.ID: device.health == "Healthy" for device in message.devices}
                client.lists += 1
        except (grpc.aio.AioRpcError, asyncio.CancelledError, grpc.aio.UsageError):
            await asyncio.sleep(0.02)  # a plugin that registers meanwhile is disconnected, as by the real kubelet
            current = self.clients.pop(resource, None)
            if current is not None:
                await current.channel.close()

    async def _list(self, _: Any, context: Any) -> resources.ListPodResourcesResponse:
        self.lists += 1
        self.lists_in_flight += self.allocating > 0
        if self.lists_fail:
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

    async def _offered(self, _: Any, __: Any) -> resources.AllocatableResourcesResponse:
        """What our plugin and the others offer; `others` are device IDs by resource."""
        ours = {resource: client.healthy for resource, client in self.clients.items()}
        devices = [
            resources.ContainerDevices(resource_name=resource, device_ids=sorted(ids))
            for resource, ids in (*ours.items(), *self.others.items())
        ]
        return resources.AllocatableResourcesResponse(devices=devices)

    def _listed(self, pod: dict[str, Any]) -> resources.PodResources:
        meta = pod["metadata"]
        containers = [
            resources.ContainerResources(
                name=container["name"],
                devices=[
                    resources.ContainerDevices(resource_name=resource, device_ids=sorted(ids))
                    for resource, ids in self.allocations[meta["uid"]][container["name"]].items()
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


def _requested(container: Mapping[str, Any]) -> list[tuple[str, int]]:
    amounts = request.amounts(container)
    requested = ((name, quantity.whole_number(amounts.get(name, "0"))) for name in names.KUBELET_RESOURCES)
    return [(name, amount) for name, amount in requested if amount]


def _unary(method: Any, message: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        method,
        request_deserializer=message.FromString,
        response_serializer=lambda response: response.SerializeToString(),
    )
