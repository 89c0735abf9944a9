"""An event loop in virtual time, and an API client without sockets: minutes of waiting pass in milliseconds.

The API server is the simulator's. A test decides when the server carries a request out, which may be after the client
has given up, and so after the client's process has ended.
"""

import asyncio
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx
import msgspec

from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from vgpu.simulator.api import app, resources, watch
from vgpu.simulator.api import selectors as label_selectors
from vgpu.simulator.api.cluster import InMemoryCluster


class _Selector(selectors.DefaultSelector):
    """Never waits: where nothing is ready, the time of the next timer is now."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "deadlock: no timer, and nothing is ready"
            self.now += max(0.0, timeout)
        return ready


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine; the loop's time begins at 0 and jumps from timer to timer."""

    def loop() -> asyncio.AbstractEventLoop:
        selector = _Selector()
        made = asyncio.SelectorEventLoop(selector)
        made.time = lambda: selector.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main)


class VirtualClient(KubernetesClient):
    """A client of an API server in this process.

    `travel_s` returns how many seconds after a request the server carries it out; the client gives up at its timeout.
    """

    def __init__(self, cluster: InMemoryCluster, travel_s: Callable[[str, str], float]) -> None:
        self._cluster = cluster
        self._travel_s = travel_s
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app.build(cluster)), base_url="http://api")
        self._requests: set[asyncio.Task[bytes]] = set()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        params: Any = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        request = asyncio.create_task(self._carry_out(method, path, params, body, content_type))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(request)
        except TimeoutError:
            request.add_done_callback(lambda done: done.exception())
            raise KubernetesError(0, "TimeoutError", path) from None

    async def page(self, path: str, params: Any, most: int) -> bytes:  # noqa: ARG002 - the lists here are short
        return await self.get(path, params)

    async def _carry_out(self, method: str, path: str, params: Any, body: Any, content_type: str) -> bytes:
        await asyncio.sleep(self._travel_s(method, path))
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type}
        response = await self._http.request(method, path, params=params, content=content, headers=headers)
        if response.is_error:
            status = response.json()
            raise KubernetesError(response.status_code, status["reason"], status["message"])
        return response.content

    async def stream(self, path: str, params: Any, *, silence_s: float) -> AsyncIterator[list[bytes]]:  # noqa: ARG002
        store = self._cluster.store
        target = resources.parse(path, self._cluster.resource)
        request = watch.WatchRequest(
            target=target,
            matches=label_selectors.parse(target.resource, "", ""),
            version=int(params["resourceVersion"]),
            bookmarks=True,
            initial_end=False,
            timeout_s=float(params["timeoutSeconds"]),
        )
        async for line in watch.lines(store, request, asyncio.get_running_loop().time):
            await asyncio.sleep(self._travel_s("WATCH", path))
            yield [line.rstrip(b"\n")]
