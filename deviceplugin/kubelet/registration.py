"""Registers a resource with the kubelet, again and at once whenever the kubelet's ListAndWatch stream has ended.

The kubelet finds plugins by resource name, and the end of an old stream disconnects the plugin that is registered under
that name by then. So the plugin never registers over a live stream, and pauses shortly after a stream's end until the
kubelet has noticed. A kubelet that starts deletes the sockets in its directory before it listens; the plugin's sockets
are in a directory below, which the kubelet leaves alone, so that registering again takes one call.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import grpc

from deviceplugin.kubelet.api import deviceplugin_pb2 as api
from vgpu.domain.errors import KubeletError

API_VERSION: Final = "v1beta1"
KUBELET_SOCKET: Final = "kubelet.sock"
POLL_S: Final = 0.05
_NOTICE_S: Final = 0.03  # until the kubelet has noticed the end of an old stream
_CALL_TIMEOUT_S: Final = 15.0  # the kubelet connects back during the call, for up to 10 s
_STREAM_TIMEOUT_S: Final = 5.0

log = logging.getLogger(__name__)


class ListAndWatchStreams:
    """The kubelet's ListAndWatch streams of one resource.

    `on_change` is called when a stream has begun or ended, and may be set at any time.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._live = 0
        self._began = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def is_live(self) -> bool:
        """Whether a stream is open."""
        return self._live > 0

    def begin(self) -> None:
        """Note that a stream has begun."""
        self._live += 1
        self._began.set()
        self._ended.clear()
        self.on_change()

    def end(self) -> None:
        """Note that a stream has ended."""
        self._live -= 1
        if not self._live:
            self._began.clear()
            self._ended.set()
        self.on_change()

    async def wait_begun(self, timeout: float) -> bool:
        """Wait for a stream; return False after the timeout."""
        try:
            async with asyncio.timeout(timeout):
                await self._began.wait()
        except TimeoutError:
            return False
        return True

    async def wait_ended(self) -> None:
        """Return when no stream is open."""
        await self._ended.wait()


class Registration:
    """Keeps one resource registered."""

    def __init__(
        self,
        directory: Path,
        resource: str,
        endpoint: str,
        stream: ListAndWatchStreams,
        ensure: Callable[[], Awaitable[None]],
    ) -> None:
        """`endpoint` is the plugin's socket below the kubelet's `directory`; `ensure` starts its server if needed."""
        self._kubelet = directory / KUBELET_SOCKET
        self._request = api.RegisterRequest(
            version=API_VERSION,
            endpoint=endpoint,
            resource_name=resource,
            options=api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True),
        )
        self._stream = stream
        self._ensure = ensure
        self._last_error = ""

    async def run(self) -> None:
        """Register whenever there is no stream, until cancelled."""
        while True:
            await self._stream.wait_ended()
            await asyncio.sleep(_NOTICE_S)
            if not self._stream.is_live and not await self._try():
                await asyncio.sleep(POLL_S)

    async def _try(self) -> bool:
        if not is_listening(self._kubelet):
            return False
        try:
            await self._ensure()
            await self._register()
        except KubeletError as error:
            if str(error) != self._last_error:
                log.warning("%s: %s", self._request.resource_name, error)
            self._last_error = str(error)
            return False
        self._last_error = ""
        log.info("%s: registered", self._request.resource_name)
        return await self._stream.wait_begun(_STREAM_TIMEOUT_S)

    async def _register(self) -> None:
        async with grpc.aio.insecure_channel(f"unix:{self._kubelet}") as channel:
            register = channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=api.RegisterRequest.SerializeToString,
                response_deserializer=api.Empty.FromString,
            )
            try:
                await register(self._request, timeout=_CALL_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                raise KubeletError(error.details() or error.code().name) from error


def is_listening(path: Path) -> bool:
    """Whether a process listens on a unix socket; cheap enough for 20 calls a second."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
