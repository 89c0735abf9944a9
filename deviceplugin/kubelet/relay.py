"""Stands between the kubelet and the process that serves it, so that the kubelet sees no end of that process.

The kubelet fails a pod for good that it admits while no ListAndWatch stream is open. So the relay, in a process of its
own that does nothing else, holds the sockets and the streams, and passes each call on. While no process serves, calls
wait for the next one. The relay looks like a kubelet to the serving process, which registers with it, and whose streams
live as long as the kubelet's.

A call whose answer was lost with a process is sent to the next one, with the time at which it was sent first.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

import grpc

from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from deviceplugin.kubelet.registration import KUBELET_SOCKET, ListAndWatchStreams, Registration
from deviceplugin.kubelet.server import OPTIONS, PLUGIN_SERVICE, ResourceServer, SentBefore

_PREFER: Final = "GetPreferredAllocation"
_ALLOCATE: Final = "Allocate"
_UNARY: Final = ("GetDevicePluginOptions", _PREFER, _ALLOCATE, "PreStartContainer")
_STREAM: Final = "ListAndWatch"
_LOST: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)  # what the end of the process looks like
_PAUSE_S: Final = 0.02
_KUBELET_S: Final = 10.0  # in which the kubelet opens its stream after a registration
_QUICKLY: Final = [
    *OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
]

Bytes = grpc.aio.ServicerContext[bytes, bytes]


class ResourceRelay:
    """Relays one resource. `wall_clock` gives seconds since 1970."""

    def __init__(self, kubelet: Path, here: Path, resource: str, socket: str, wall_clock: Callable[[], float]) -> None:
        """`socket` is the plugin's socket below the kubelet's folder, and below the relay's folder `here`."""
        self.stream = ListAndWatchStreams()
        self._channel = grpc.aio.insecure_channel(f"unix:{here / socket}", options=_QUICKLY)
        self._server = ResourceServer(kubelet / socket, self._handlers())
        self._registration = Registration(kubelet, resource, socket, self.stream, self._ensure)
        self._wall_clock = wall_clock
        self._is_served = asyncio.Event()
        self._processes = 0
        self._preferred: tuple[int, bytes] | None = None  # by which process, and the request

    @property
    def is_served(self) -> bool:
        """Whether a process has registered that has not ended."""
        return self._is_served.is_set()

    def registered(self) -> None:
        """Note that a process serves the resource."""
        self._processes += 1
        self._is_served.set()

    def ended(self) -> None:
        """Note that the process has ended."""
        self._is_served.clear()

    async def run(self) -> None:
        """Keep the resource registered with the kubelet while a process serves it, until cancelled."""
        await self._registration.run()

    async def stop(self) -> None:
        """End the kubelet's stream and the calls that wait."""
        await self._server.stop()
        await self._channel.close()

    async def _ensure(self) -> None:
        await self._is_served.wait()
        await self._server.ensure()

    async def _list_and_watch(self, request: bytes, _: Bytes) -> AsyncIterator[bytes]:
        self.stream.begin()
        try:
            while True:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    async with contextlib.aclosing(self._lists(request)) as lists:
                        async for devices in lists:
                            yield devices
                await asyncio.sleep(_PAUSE_S)
        finally:
            self.stream.end()

    async def _lists(self, request: bytes) -> AsyncGenerator[bytes]:
        """Yield the lists of devices of one process. Raises AioRpcError at its end."""
        await self._is_served.wait()
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(_path(_STREAM))
        call = method(request)
        try:
            async for devices in call:
                yield devices
        finally:
            call.cancel()

    async def _unary(self, method: str, request: bytes, context: Bytes) -> bytes:
        try:
            answer, process = await self._answered(method, request)
        except grpc.aio.AioRpcError as error:
            return await context.abort(error.code(), error.details() or "")
        if method in (_PREFER, _ALLOCATE):
            self._preferred = (process, request) if method == _PREFER else None
        return answer

    async def _answered(self, method: str, request: bytes) -> tuple[bytes, int]:
        """Return the answer of a process, and which process that was: the first one is 1. Raises AioRpcError."""
        began = self._wall_clock()
        metadata: SentBefore.Metadata = ()
        while True:
            await self._is_served.wait()
            process = self._processes
            try:
                if method == _ALLOCATE:
                    await self._prefer_again(process)
                return await self._sent(method, request, metadata), process
            except grpc.aio.AioRpcError as error:
                if error.code() not in _LOST:
                    raise
            metadata = SentBefore.metadata(began)
            await asyncio.sleep(_PAUSE_S)

    async def _prefer_again(self, process: int) -> None:
        """Before Allocate, ask a process for which container it is, where one was asked that has ended."""
        if self._preferred is not None and self._preferred[0] != process:
            await self._sent(_PREFER, self._preferred[1], ())
            self._preferred = process, self._preferred[1]

    async def _sent(self, method: str, request: bytes, metadata: SentBefore.Metadata) -> bytes:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(_path(method))
        return await call(request, metadata=metadata)

    def _handlers(self) -> grpc.GenericRpcHandler:
        methods: dict[str, Any] = {method: grpc.unary_unary_rpc_method_handler(self._call(method)) for method in _UNARY}
        methods[_STREAM] = grpc.unary_stream_rpc_method_handler(self._list_and_watch)
        return grpc.method_handlers_generic_handler(PLUGIN_SERVICE, methods)

    def _call(self, method: str) -> Callable[[bytes, Bytes], Awaitable[bytes]]:
        async def call(request: bytes, context: Bytes) -> bytes:
            return await self._unary(method, request, context)

        return call


def _path(method: str) -> str:
    return f"/{PLUGIN_SERVICE}/{method}"


class Relay:
    """Relays all resources of a node."""

    def __init__(self, kubelet: Path, here: Path, sockets: Mapping[str, str], wall_clock: Callable[[], float]) -> None:
        """Relay between the kubelet's folder of device plugins and a folder `here`.

        `sockets`: the plugin's socket of each resource, below either folder.
        """
        self._here = here
        self._resources = {
            resource: ResourceRelay(kubelet, here, resource, socket, wall_clock) for resource, socket in sockets.items()
        }

    @property
    def is_served(self) -> bool:
        """Whether a process serves every resource."""
        return all(resource.is_served for resource in self._resources.values())

    def ended(self) -> None:
        """Note that the serving process has ended: calls wait from now on."""
        for resource in self._resources.values():
            resource.ended()

    @contextlib.asynccontextmanager
    async def running(self, *beside: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
        """Serve the kubelet and the serving process inside the block; `beside` runs meanwhile."""
        server = await self._serve()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run) for run in (*(one.run() for one in self._resources.values()), *beside)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(server.stop(None), *(resource.stop() for resource in self._resources.values()))

    async def _serve(self) -> grpc.aio.Server:
        """Listen for the registrations of the serving process."""
        self._here.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self._here / KUBELET_SOCKET).unlink(missing_ok=True)
        register = grpc.unary_unary_rpc_method_handler(
            self._register,
            request_deserializer=api.RegisterRequest.FromString,
            response_serializer=api.Empty.SerializeToString,
        )
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": register}),)
        )
        server.add_insecure_port(f"unix:{self._here / KUBELET_SOCKET}")
        await server.start()
        return server

    async def _register(self, request: api.RegisterRequest, context: Any) -> api.Empty:
        """Register: returns once the kubelet's stream is open, which is when the process gets its own."""
        resource = self._resources[request.resource_name]
        resource.registered()
        if not await resource.stream.wait_begun(_KUBELET_S):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the kubelet has opened no stream yet")
        return api.Empty()
