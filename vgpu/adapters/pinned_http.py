"""Requests to another replica of a part, which is known by the hash of its certificate and not by its name.

No authority has signed the replicas' own certificates, and an address is soon another pod's. The hash is compared
before anything is sent, so that no other server gets the request's credentials.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp

from vgpu.domain.errors import ReplicaUnreachable

CONNECT_S: Final = 2.0
TOTAL_S: Final = 60.0
MAX_CONNECTIONS: Final = 16
MAX_BODY: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class ReplicaAnswer:
    """An answer, with its body as it was sent: packed where Content-Encoding says so."""

    status: HTTPStatus
    headers: Mapping[str, str]
    body: bytes


class PinnedHttp:
    """A pool of connections to replicas. It follows no redirection, and uses no proxy."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], certificate_sha256: str = ""
    ) -> ReplicaAnswer:
        """Send a request without a body, to a server with the certificate of this hash.

        Args:
            method: of the request.
            url: encoded, with the query.
            headers: of the request.
            certificate_sha256: in hexadecimal; unused where the URL has no TLS.

        Raises:
            ReplicaUnreachable: no answer came, or not from the server with the certificate, or it is too long.
        """
        try:
            pinned = aiohttp.Fingerprint(bytes.fromhex(certificate_sha256)) if url.startswith("https:") else True
            limits = aiohttp.ClientTimeout(total=TOTAL_S, sock_connect=CONNECT_S)
            asked = self._opened().request(
                method, url, headers=headers, ssl=pinned, timeout=limits, allow_redirects=False
            )
            async with asked as response:
                body = await _read(response)
                return ReplicaAnswer(HTTPStatus(response.status), response.headers.copy(), body)
        except (aiohttp.ServerFingerprintMismatch, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ReplicaUnreachable(_said(error)) from error

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=MAX_CONNECTIONS), auto_decompress=False
            )
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > MAX_BODY:
            raise ReplicaUnreachable(f"its answer is longer than {MAX_BODY >> 20} MiB")
    return bytes(data)


def _said(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerFingerprintMismatch):
        return f"{error.host}:{error.port} has another certificate than its Lease says"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
