"""A client of the cluster's API server: JSON documents by REST path.

api = Api(namespace, token, authority)
api.create("/api/v1/namespaces/default/pods", {...})
api.get("/api/v1/nodes")["items"]
"""

import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from cluster import accounts, namespace
from vgpu.domain.formats import json_depth

Document = dict[str, Any]


class RequestRefused(AssertionError):
    """The API server refused a request; has its status code and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Transport(httpx.HTTPTransport):
    """An HTTP transport that connects inside the cluster's network namespace."""

    def __init__(self, within: namespace.LinuxNamespaces, verify: ssl.SSLContext | bool = True) -> None:
        super().__init__(verify=verify, retries=2)
        self._within = within

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._within.network():
            return super().handle_request(request)


class ClusterApi:
    """A client of the cluster's API server."""

    def __init__(self, within: namespace.LinuxNamespaces, token: str, authority: Path) -> None:
        self._authority = authority
        headers = {"Authorization": f"Bearer {token}"}
        transport = Transport(within, ssl.create_default_context(cafile=authority))
        self._http = httpx.Client(base_url=accounts.SERVER, headers=headers, transport=transport, timeout=30)

    def ready(self) -> bool:
        try:
            return self._http.get("/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def get(self, path: str, **query: str) -> Document:
        return self.request("GET", path, query=query)

    def find(self, path: str) -> Document | None:
        """Read an object; None where it does not exist."""
        try:
            return self.get(path)
        except RequestRefused as refused:
            if refused.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def create(self, path: str, body: Document) -> Document:
        return self.request("POST", path, body)

    def patch(self, path: str, body: Document) -> Document:
        """Apply a JSON merge patch."""
        return self.request("PATCH", path, body, kind="application/merge-patch+json")

    def delete(self, path: str, **query: str) -> Document:
        return self.request("DELETE", path, query=query)

    def text(self, path: str, **query: str) -> str:
        """Read a text that is not JSON: logs, metrics."""
        return self._checked(self._http.get(path, params=query)).text

    def text_of(self, method: str, path: str, **query: str) -> str:
        """Send a request without a body, and return the answer's text."""
        return self._checked(self._http.request(method, path, params=query)).text

    def request(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Document:
        response = self._http.request(method, path, json=body, params=query, headers={"Content-Type": kind})
        return _document(self._checked(response).content)

    @staticmethod
    def _checked(response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        status = response.json() if "json" in response.headers.get("content-type", "") else {}
        raise RequestRefused(response.status_code, status.get("message", response.text))

    def close(self) -> None:
        self._http.close()


def _document(text: bytes) -> Document:
    """Read JSON; of objects too deep for the parser, which tests create, the deep parts are null."""
    try:
        found: Document = json.loads(text)
    except RecursionError:
        found = json.loads(json_depth.shallow(text))
    return found
