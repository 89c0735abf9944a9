"""`python -m tests.e2e.nvidia_plugin [--cdi] UUID ...`: offers `nvidia.com/gpu`, as NVIDIA's device plugin does.

It registers with the node's kubelet as NVIDIA's plugin does by default: device IDs are UUIDs, and a container gets its
cards by NVIDIA_VISIBLE_DEVICES; with --cdi, as with NVIDIA's strategy `cdi-cri`, by their names of the Container Device
Interface.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from deviceplugin.kubelet.api import deviceplugin_pb2 as api

RESOURCE = "nvidia.com/gpu"
FOLDER = Path("/var/lib/kubelet/device-plugins")
SOCKET = "nvidia-gpu.sock"


async def main(cards: list[str], *, cdi: bool) -> None:
    """Serve until the process is ended."""
    (FOLDER / SOCKET).unlink(missing_ok=True)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([handlers(cards, cdi=cdi)])
    server.add_insecure_port(f"unix:{FOLDER / SOCKET}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{FOLDER / 'kubelet.sock'}") as channel:
        register = channel.unary_unary(
            "/v1beta1.Registration/Register",
            request_serializer=api.RegisterRequest.SerializeToString,
            response_deserializer=api.Empty.FromString,
        )
        await register(api.RegisterRequest(version="v1beta1", endpoint=SOCKET, resource_name=RESOURCE))
    await server.wait_for_termination()


def handlers(cards: list[str], *, cdi: bool) -> grpc.GenericRpcHandler:
    async def options(_: Any, __: Any) -> api.DevicePluginOptions:
        return api.DevicePluginOptions()

    async def listed(_: Any, __: Any) -> AsyncIterator[api.ListAndWatchResponse]:
        yield api.ListAndWatchResponse(devices=[api.Device(ID=card, health="Healthy") for card in cards])
        await asyncio.Event().wait()

    async def allocate(request: Any, _: Any) -> api.AllocateResponse:
        answer = _by_cdi if cdi else _by_variable
        answers = [answer(container_request.devices_ids) for container_request in request.container_requests]
        return api.AllocateResponse(container_responses=answers)

    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    methods: dict[str, Any] = {
        "GetDevicePluginOptions": unary(options, api.Empty.FromString, _bytes),
        "ListAndWatch": stream(listed, api.Empty.FromString, _bytes),
        "Allocate": unary(allocate, api.AllocateRequest.FromString, _bytes),
    }
    return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)


def _by_variable(cards: Sequence[str]) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(cards)})


def _by_cdi(cards: Sequence[str]) -> api.ContainerAllocateResponse:
    devices = [api.CDIDevice(name=f"{RESOURCE}={card}") for card in cards]
    return api.ContainerAllocateResponse(cdi_devices=devices)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.nvidia_plugin", description="Offers nvidia.com/gpu.")
    parser.add_argument("--cdi", action="store_true", help="name cards by the Container Device Interface")
    parser.add_argument("cards", metavar="UUID", nargs="*")
    return parser.parse_args()


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString())


if __name__ == "__main__":
    arguments = _arguments()
    asyncio.run(main(arguments.cards, cdi=arguments.cdi))
