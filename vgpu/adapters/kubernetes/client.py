"""Requests to the API server: raw JSON in and out, every failure a `KubernetesError`."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from vgpu.adapters.kubernetes import access, sockets
from vgpu.adapters.kubernetes.access import ApiAccess
from vgpu.domain.errors import KubernetesError

DEFAULT_TIMEOUT_S: Final = 30.0
MAX_CONNECTIONS: Final = 64
READ_BUFFER: Final = 2 << 20  # an event of a watch may be longer than aiohttp's own buffer
MAX_RETRY_AFTER_S: Final = 60  # a longer wait asked for is not trusted


class PatchKind(StrEnum):
    """The content types of PATCH requests."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class _ErrorStatus(msgspec.Struct):
    """The part of a `Status` object that describes an error."""

    reason: str = ""
    message: str = ""


class KubernetesClient:
    """A connection pool to one API server, with its credentials.

    Every verb returns the body's bytes. It raises `KubernetesError` with the HTTP status, or with status 0 where no
    answer came. `timeout` is in seconds, for the whole request; the API server is told, and carries a request out no
    later than that after it received the request.
    """

    def __init__(self, access: ApiAccess, *, user_agent: str) -> None:
        self._access = access
        self._session = aiohttp.ClientSession(
            connector=sockets.connector(access.tls, MAX_CONNECTIONS),
            headers={"User-Agent": user_agent, "Accept": "application/json"},
            read_bufsize=READ_BUFFER,
            trust_env=True,  # HTTPS_PROXY and NO_PROXY
        )

    @classmethod
    async def connect(cls, kubeconfig: str | None, *, user_agent: str) -> Self:
        """Read credentials from a kubeconfig file, or from the pod's service account where it is None."""
        found = access.of_pod() if kubeconfig is None else access.of_kubeconfig(Path(kubeconfig))
        return cls(found, user_agent=user_agent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pool; requests in flight fail."""
        await self._session.close()

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, timeout: float = DEFAULT_TIMEOUT_S
    ) -> bytes:
        """GET an object or a list."""
        return await self._call("GET", path, params=params, timeout=timeout)

    async def page(self, path: str, params: Mapping[str, str], most: int) -> bytes | None:
        """GET a page of a list; None where it is longer than `most` bytes, of which no more is held in memory."""
        limits = aiohttp.ClientTimeout(total=DEFAULT_TIMEOUT_S)
        async with self._response("GET", path, params=params, timeout=limits) as response:
            data = bytearray()
            async for chunk in response.content.iter_any():
                data += chunk
                if len(data) > most:
                    return None
            return bytes(data)

    async def post(self, path: str, body: Any, *, timeout: float = DEFAULT_TIMEOUT_S) -> bytes:
        """POST a JSON-able body: create an object, or a subresource such as a Binding."""
        return await self._call("POST", path, body=body, timeout=timeout)

    async def put(self, path: str, body: Any, *, timeout: float = DEFAULT_TIMEOUT_S) -> bytes:
        """Replace an object; its resourceVersion keeps another client's change from being overwritten."""
        return await self._call("PUT", path, body=body, timeout=timeout)

    async def patch(
        self, path: str, body: Any, *, kind: PatchKind = PatchKind.MERGE, timeout: float = DEFAULT_TIMEOUT_S
    ) -> bytes:
        """Change part of an object."""
        return await self._call("PATCH", path, body=body, content_type=kind, timeout=timeout)

    async def delete(self, path: str, body: Any = None, *, timeout: float = DEFAULT_TIMEOUT_S) -> bytes:
        """DELETE an object; the body may hold DeleteOptions."""
        return await self._call("DELETE", path, body=body, timeout=timeout)

    async def stream(self, path: str, params: Mapping[str, str], *, silence_s: float) -> AsyncIterator[list[bytes]]:
        """Yield the lines of a watch, those together that have come together, until the server ends it.

        The first list is empty: the server has taken the watch. `silence_s` without a byte is a failed connection.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=DEFAULT_TIMEOUT_S, sock_read=silence_s)
        async with self._response("GET", path, params=params, timeout=limits) as response:
            yield []
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                yield lines

    async def _call(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        limits = aiohttp.ClientTimeout(total=timeout)
        deadline = {"timeout": f"{timeout:g}s"}  # https://kubernetes.io/docs/reference/using-api/api-concepts/
        async with self._response(
            method, path, params=deadline | dict(params or {}), body=body, content_type=content_type, timeout=limits
        ) as r:
            data: bytes = await r.read()
            return data

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request; every failure, also while the body is read, becomes a KubernetesError."""
        data = None if body is None else msgspec.json.encode(body)
        try:
            headers = {"Content-Type": content_type, **self._access.headers()}
            answer = self._session.request(
                method, self._access.url + path, params=params, data=data, headers=headers, timeout=timeout,
                proxy=self._access.proxy or None,
            )  # fmt: skip
            async with answer as response:
                if response.status >= 300:  # noqa: PLR2004 - HTTP's classes; the API server redirects nothing
                    retry_after = response.headers.get("Retry-After", "")
                    raise _refused(response.status, await response.read(), retry_after)
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubernetesError(0, type(error).__name__, str(error) or path) from error


def _refused(status: int, body: bytes, retry_after: str) -> KubernetesError:
    try:
        said = msgspec.json.decode(body, type=_ErrorStatus)
    except msgspec.DecodeError:
        said = _ErrorStatus(message=body[:200].decode(errors="replace"))
    seconds = int(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0
    return KubernetesError(status, said.reason, said.message, retry_after_s=min(seconds, MAX_RETRY_AFTER_S))
