"""A client of the kubelet's pod-resources, which say which container holds which device IDs.

The kubelet allows 100 calls a second for all its clients together; refused calls are repeated here. When List may be
called is decided by `deviceplugin.pod_resources`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Final, TypeVar

import grpc

from deviceplugin.kubelet.api import podresources_pb2 as api
from deviceplugin.kubelet.messages import Holdings, Listing
from vgpu.domain import names
from vgpu.domain.errors import KubeletError
from vgpu.domain.identifiers import ContainerName, Namespace
from vgpu.node.containers.bound_pod import PodKey

T = TypeVar("T")

_TIMEOUT_S: Final = 5.0
_RATE_LIMITED_PAUSE_S: Final = 0.005
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),  # a restarted kubelet admits pods within a second
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
]


class PodResourcesClient:
    """A client of one kubelet, which reconnects after the kubelet's restart."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)
        self._list = self._channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )
        self._get = self._channel.unary_unary(
            "/v1.PodResourcesLister/Get",
            request_serializer=api.GetPodResourcesRequest.SerializeToString,
            response_deserializer=api.GetPodResourcesResponse.FromString,
        )

        self._allocatable = self._channel.unary_unary(
            "/v1.PodResourcesLister/GetAllocatableResources",
            request_serializer=api.AllocatableResourcesRequest.SerializeToString,
            response_deserializer=api.AllocatableResourcesResponse.FromString,
        )

    async def list(self) -> Listing:
        """Return everything that the kubelet lists, of our resources only. Raises KubeletError."""
        answer = await _within_rate_limit(lambda: self._list(api.ListPodResourcesRequest(), timeout=_TIMEOUT_S))
        return {(Namespace(pod.namespace), pod.name): _holdings(pod) for pod in answer.pod_resources}

    async def get(self, key: PodKey) -> Holdings:
        """Return what one pod holds; empty where the kubelet knows no such pod. Raises KubeletError."""
        request = api.GetPodResourcesRequest(pod_namespace=key[0], pod_name=key[1])
        try:
            answer = await _within_rate_limit(lambda: self._get(request, timeout=_TIMEOUT_S))
        except KubeletError as error:
            if "not found" in str(error):
                return {}
            raise
        return _holdings(answer.pod_resources)

    async def offered(self) -> Mapping[str, Collection[str]]:
        """Return the IDs of the healthy devices of all other plugins, by resource. Raises KubeletError."""
        request = api.AllocatableResourcesRequest()
        answer = await _within_rate_limit(lambda: self._allocatable(request, timeout=_TIMEOUT_S))
        found: dict[str, set[str]] = {}
        for device in answer.devices:
            if device.resource_name not in names.KUBELET_RESOURCES:
                found.setdefault(device.resource_name, set()).update(device.device_ids)
        return found

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def _holdings(pod: api.PodResources) -> Holdings:
    return {
        ContainerName(container.name): {resource: _ids(container, resource) for resource in names.KUBELET_RESOURCES}
        for container in pod.containers
    }


def _ids(container: api.ContainerResources, resource: str) -> frozenset[str]:
    return frozenset(
        device_id for part in container.devices if part.resource_name == resource for device_id in part.device_ids
    )


async def _within_rate_limit(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the kubelet's rate limit lets the call through, for at most 5 s."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            while True:
                try:
                    return await call()
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                        raise KubeletError(error.details() or error.code().name) from error
                await asyncio.sleep(_RATE_LIMITED_PAUSE_S)
    except TimeoutError:
        raise KubeletError("the kubelet's rate limit refused every call for 5 s") from None
