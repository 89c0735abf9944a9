"""The kubelet's DevicePlugin service: a gRPC server for each resource, which hands the calls to the `KubeletVerbs`.

A call that the relay sends again, because its answer was lost with another process, says when it was sent first.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any, Final, Protocol

import grpc

from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from deviceplugin.kubelet.messages import ContainerResponse, Device
from deviceplugin.kubelet.registration import ListAndWatchStreams

PLUGIN_SERVICE: Final = "v1beta1.DevicePlugin"
OPTIONS: Final = [("grpc.max_receive_message_length", -1)]  # GetPreferredAllocation carries every free ID
_GRACE_S: Final = 0.5
_HEALTH: Final = {True: "Healthy", False: "Unhealthy"}

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class SentBefore:
    """The gRPC metadata of a call that was sent before and got no answer: the seconds since 1970 of the first time."""

    Metadata = tuple[tuple[str, str], ...]
    _KEY: Final = "vgpu-first-sent"

    @classmethod
    def metadata(cls, first_sent: float) -> Metadata:
        """Return the metadata of a call that was sent before."""
        return ((cls._KEY, repr(first_sent)),)

    @classmethod
    def of(cls, context: Context) -> float | None:
        """Return when a call was sent first; None where it was sent once."""
        found = next((value for key, value in context.invocation_metadata() or () if key == cls._KEY), None)
        return None if found is None else float(found)


class Devices(Protocol):
    """The device lists of this node."""

    def of(self, resource: str) -> tuple[Device, ...]:
        """Return the devices of a resource now."""

    async def wait(self) -> None:
        """Return when a list may have changed since the call."""


class KubeletVerbs(Protocol):
    """The decisions behind the service's calls."""

    async def prefer(self, resource: str, available: Collection[str], must: Collection[str], size: int) -> list[str]:
        """Answer GetPreferredAllocation: the IDs to prefer."""

    def allocate(self, resource: str, ids: frozenset[str], first_sent: float | None) -> ContainerResponse:
        """Answer Allocate, which another process may have answered without effect since `first_sent`."""

    async def prove(self, resource: str, ids: frozenset[str]) -> object | None:
        """Answer PreStartContainer: None, or a refusal whose text the kubelet shows."""


class Service:
    """The calls of one resource."""

    def __init__(self, resource: str, devices: Devices, verbs: KubeletVerbs, stream: ListAndWatchStreams) -> None:
        self._resource = resource
        self._devices = devices
        self._verbs = verbs
        self._stream = stream

    async def options(self, _: api.Empty, __: Context) -> api.DevicePluginOptions:
        """GetDevicePluginOptions."""
        return api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)

    async def list_and_watch(self, _: api.Empty, __: Context) -> AsyncIterator[api.ListAndWatchResponse]:
        """ListAndWatch: the list now and after each change, until the kubelet ends the stream."""
        self._stream.begin()
        try:
            sent: tuple[Device, ...] | None = None
            while True:
                listed = self._devices.of(self._resource)
                if listed == sent:
                    await self._devices.wait()
                    continue
                yield api.ListAndWatchResponse(devices=[_device(device) for device in listed])
                sent = listed
        finally:
            self._stream.end()

    async def prefer(self, request: api.PreferredAllocationRequest, _: Context) -> api.PreferredAllocationResponse:
        """GetPreferredAllocation."""
        answers = [
            await self._verbs.prefer(
                self._resource,
                container_request.available_deviceIDs,
                container_request.must_include_deviceIDs,
                container_request.allocation_size,
            )
            for container_request in request.container_requests
        ]
        containers = [api.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers]
        return api.PreferredAllocationResponse(container_responses=containers)

    async def allocate(self, request: api.AllocateRequest, context: Context) -> api.AllocateResponse:
        """Allocate."""
        first_sent = SentBefore.of(context)
        answers = [
            self._verbs.allocate(self._resource, frozenset(container_request.devices_ids), first_sent)
            for container_request in request.container_requests
        ]
        return api.AllocateResponse(container_responses=[_response(answer) for answer in answers])

    async def prestart(self, request: api.PreStartContainerRequest, context: Context) -> api.PreStartContainerResponse:
        """PreStartContainer; a refusal becomes the text that `kubectl describe pod` shows."""
        refusal = await self._verbs.prove(self._resource, frozenset(request.devices_ids))
        if refusal is not None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
        return api.PreStartContainerResponse()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the calls as gRPC's handlers."""
        methods: dict[str, Any] = {
            "GetDevicePluginOptions": _unary(self.options, api.Empty.FromString),
            "GetPreferredAllocation": _unary(self.prefer, api.PreferredAllocationRequest.FromString),
            "Allocate": _unary(self.allocate, api.AllocateRequest.FromString),
            "PreStartContainer": _unary(self.prestart, api.PreStartContainerRequest.FromString),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self.list_and_watch, request_deserializer=api.Empty.FromString, response_serializer=_serialize
            ),
        }
        return grpc.method_handlers_generic_handler(PLUGIN_SERVICE, methods)


class ResourceServer:
    """Serves one resource on a socket in the plugin's directory below the kubelet's."""

    def __init__(self, socket: Path, handlers: grpc.GenericRpcHandler) -> None:
        self._socket = socket
        self._handlers = handlers
        self._server: grpc.aio.Server | None = None

    async def ensure(self) -> None:
        """Start serving where that has not happened, or the socket has been deleted."""
        if self._server is not None and self._socket.is_socket():
            return
        await self.stop()
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        self._socket.unlink(missing_ok=True)
        server = grpc.aio.server(options=OPTIONS)
        server.add_generic_rpc_handlers((self._handlers,))
        server.add_insecure_port(f"unix:{self._socket}")
        await server.start()
        self._server = server

    async def stop(self, grace_s: float | None = _GRACE_S) -> None:
        """Stop serving, which ends the kubelet's stream; calls have `grace_s` to end."""
        if self._server is not None:
            await self._server.stop(grace_s)
            self._server = None


def _unary(method: Any, decode: Callable[[bytes], Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(method, request_deserializer=decode, response_serializer=_serialize)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _device(device: Device) -> api.Device:
    return api.Device(ID=device.id, health=_HEALTH[device.healthy])


def _response(answer: ContainerResponse) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(
        envs=answer.envs,
        mounts=[
            api.Mount(container_path=mount.container_path, host_path=str(mount.host_path), read_only=mount.read_only)
            for mount in answer.mounts
        ],
        devices=[api.DeviceSpec(container_path=node, host_path=node, permissions="rw") for node in answer.device_nodes],
        cdi_devices=[api.CDIDevice(name=name) for name in answer.cdi_devices],
    )
