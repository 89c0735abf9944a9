"""Which clients may call the verbs under mutual TLS: only those whose certificate has a listed name.

A CA often signs more certificates than kube-scheduler's: a cluster's CA signs every kubelet's. A connection of a client
with another name is closed before its first request is read.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = logging.getLogger(__name__)


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Return the names in a certificate, as `ssl.SSLSocket.getpeercert` gives it: common names, DNS names and URIs."""
    common = [value for parts in certificate.get("subject", ()) for key, value in parts if key == "commonName"]
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "URI")]
    return frozenset((*common, *others))


def protocol(allowed: Collection[str]) -> type[HttpToolsProtocol]:
    """Return uvicorn's HTTP protocol, with the check of the client's names."""

    class NamedClients(HttpToolsProtocol):
        """Serves clients with an allowed name."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Close the connection of any other client."""
            found = names_of(transport.get_extra_info("peercert") or {})
            if not found & frozenset(allowed):
                log.warning("a client with the names %s is not in --client-names", sorted(found) or "(none)")
                self.is_refused = True
                transport.abort()
                return
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            """Do nothing for a connection that was never served."""
            if not getattr(self, "is_refused", False):
                super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Read nothing of a refused client."""
            if not getattr(self, "is_refused", False):
                super().data_received(data)

    return NamedClients
