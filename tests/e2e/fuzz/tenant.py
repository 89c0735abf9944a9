"""A client of the API server with rights on pods in one namespace, which sends bytes and measures the answers."""

import json
import ssl
import time
from typing import Final, NamedTuple

import httpx

from cluster import accounts, api
from cluster.cluster import GpuCluster

NAMESPACE: Final = accounts.TENANT.name
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_TIMEOUT_S: Final = 40.0


class Request(NamedTuple):
    """A request to the API server."""

    method: str
    path: str
    body: bytes = b""
    kind: str = "application/json"


class Reply(NamedTuple):
    """An answer: status 0 where none came; `message` of a refusal."""

    status: int
    message: str
    seconds: float

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Tenant:
    """One connection of the user; used by one thread."""

    def __init__(self, cluster: GpuCluster) -> None:
        token = accounts.token(cluster.work, accounts.TENANT.name)
        verify = ssl.create_default_context(cafile=cluster.work / "pki" / "ca.crt")
        self._http = httpx.Client(
            base_url=accounts.SERVER,
            headers={"Authorization": f"Bearer {token}"},
            transport=api.Transport(cluster.within, verify),
            timeout=_TIMEOUT_S,
        )

    def send(self, request: Request) -> Reply:
        """Send a request; a missing answer is a Reply too."""
        started = time.monotonic()
        try:
            answer = self._http.request(
                request.method, request.path, content=request.body, headers={"Content-Type": request.kind}
            )
        except httpx.HTTPError as error:
            return Reply(0, f"{type(error).__name__}: {error}", time.monotonic() - started)
        return Reply(answer.status_code, _message(answer), time.monotonic() - started)

    def close(self) -> None:
        self._http.close()


def _message(answer: httpx.Response) -> str:
    if answer.is_success:
        return ""
    try:
        return str(json.loads(answer.content).get("message", ""))
    except (ValueError, RecursionError, AttributeError):
        return answer.text[:500]
