"""The DevicePlugin service: a server on a socket for each resource, between the kubelet's messages and our words."""

import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import grpc

from deviceplugin.admission import Admission
from deviceplugin.devices import Device, DeviceLists
from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from deviceplugin.kubelet.registration import Stream
from deviceplugin.prestart import Prover
from deviceplugin.responses import ContainerResponse
from vgpu.node.inventory import Inventory

_SERVICE: Final = "v1beta1.DevicePlugin"
_OPTIONS: Final = [("grpc.max_receive_message_length", -1)]  # GetPreferredAllocation carries every free ID
_GRACE_S: Final = 0.5
_HEALTH: Final = {True: "Healthy", False: "Unhealthy"}

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class Servicer:
    """One resource's answers to the kubelet."""

    def __init__(
        self,
        resource: str,
        inventory: Inventory,
        devices: DeviceLists,
        admission: Admission,
        prover: Prover,
        stream: Stream,
    ) -> None:
        self._resource = resource
        self._inventory = inventory
        self._devices = devices
        self._admission = admission
        self._prover = prover
        self._stream = stream

    async def options(self, _: api.Empty, __: Context) -> api.DevicePluginOptions:
        """GetDevicePluginOptions."""
        return api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)

    async def list_and_watch(self, _: api.Empty, __: Context) -> AsyncIterator[api.ListAndWatchResponse]:
        """ListAndWatch: the list now and after each change, until the kubelet goes."""
        self._stream.begin()
        try:
            sent: tuple[Device, ...] | None = None
            while True:
                listed = self._devices.of(self._resource)
                if listed == sent:
                    await self._inventory.wait()
                    continue
                yield api.ListAndWatchResponse(devices=[_device(each) for each in listed])
                sent = listed
        finally:
            self._stream.end()

    async def prefer(self, request: api.PreferredAllocationRequest, _: Context) -> api.PreferredAllocationResponse:
        """GetPreferredAllocation."""
        answers = [
            await self._admission.prefer(
                self._resource, each.available_deviceIDs, each.must_include_deviceIDs, each.allocation_size
            )
            for each in request.container_requests
        ]
        containers = [api.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers]
        return api.PreferredAllocationResponse(container_responses=containers)

    async def allocate(self, request: api.AllocateRequest, _: Context) -> api.AllocateResponse:
        """Allocate."""
        plans = [
            self._admission.allocate(self._resource, frozenset(each.devices_ids)) for each in request.container_requests
        ]
        return api.AllocateResponse(container_responses=[_answer(plan) for plan in plans])

    async def prestart(self, request: api.PreStartContainerRequest, context: Context) -> api.PreStartContainerResponse:
        """PreStartContainer; a refusal becomes the text that `kubectl describe pod` shows."""
        refusal = await self._prover.prove(self._resource, frozenset(request.devices_ids))
        if refusal is not None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
        return api.PreStartContainerResponse()


class Server:
    """Serves one resource on a socket in a directory of its own below the kubelet's."""

    def __init__(self, socket: Path, servicer: Servicer) -> None:
        self._socket = socket
        self._servicer = servicer
        self._server: grpc.aio.Server | None = None

    async def ensure(self) -> None:
        """Serve, from the start again where the socket has vanished."""
        if self._server is not None and self._socket.is_socket():
            return
        await self.stop()
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        self._socket.unlink(missing_ok=True)
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((_handlers(self._servicer),))
        server.add_insecure_port(f"unix:{self._socket}")
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Stop serving; the kubelet sees its stream end."""
        if self._server is not None:
            await self._server.stop(_GRACE_S)
            self._server = None


def _handlers(servicer: Servicer) -> grpc.GenericRpcHandler:
    methods: dict[str, Any] = {
        "GetDevicePluginOptions": _unary(servicer.options, api.Empty.FromString),
        "GetPreferredAllocation": _unary(servicer.prefer, api.PreferredAllocationRequest.FromString),
        "Allocate": _unary(servicer.allocate, api.AllocateRequest.FromString),
        "PreStartContainer": _unary(servicer.prestart, api.PreStartContainerRequest.FromString),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(
            servicer.list_and_watch, request_deserializer=api.Empty.FromString, response_serializer=_serialize
        ),
    }
    return grpc.method_handlers_generic_handler(_SERVICE, methods)


def _unary(method: Any, decode: Callable[[bytes], Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(method, request_deserializer=decode, response_serializer=_serialize)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _device(device: Device) -> api.Device:
    return api.Device(ID=device.id, health=_HEALTH[device.healthy])


def _answer(plan: ContainerResponse) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(
        envs=plan.envs,
        mounts=[
            api.Mount(container_path=each.container_path, host_path=str(each.host_path), read_only=each.read_only)
            for each in plan.mounts
        ],
        devices=[api.DeviceSpec(container_path=node, host_path=node, permissions="rw") for node in plan.nodes],
        cdi_devices=[api.CDIDevice(name=name) for name in plan.cdi],
    )
