"""Who calls, and what the caller may do: loopback, a static token, or Kubernetes' own reviews."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

from extender.admin.problems import AdminProblem
from vgpu.domain import loopback, names
from vgpu.domain.identifiers import NO_NAMESPACE, Namespace

MAX_TOKEN: Final = 16 << 10  # characters; a token of a cloud provider has 4,000
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"  # before namespace and name


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, as the API server knows one. `is_local` has every right and no Kubernetes identity."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    is_local: bool = False

    @property
    def counted_as(self) -> str:
        """The name that limits count by. Service accounts of one namespace share it, as their number is not limited."""
        return self.name.rpartition(":")[0] if self.name.startswith(_SERVICE_ACCOUNT) else self.name


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """What a caller wants to do, in Kubernetes' terms. An empty namespace means all namespaces, or no namespace."""

    verb: str
    resource: str
    group: str = ""
    namespace: Namespace = NO_NAMESPACE
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}{where}"


READ_PODS: Final = AccessRequest("get", "pods")
READ_CARDS: Final = AccessRequest("list", "gpunodes", names.DOMAIN)


class Access(Protocol):
    """Authenticates and authorizes."""

    async def authenticate(self, token: str, host: str, origin: str) -> Caller:
        """Return the caller. Raises AdminProblem.

        `host` is the name by which the client addressed this server, `origin` the web page that made the request.
        """

    async def may(self, caller: Caller, action: AccessRequest) -> bool:
        """Whether the caller has the right. Raises AdminProblem where that cannot be found out."""


class LocalAccess:
    """A listener on loopback: whoever reaches it is an administrator of this machine.

    Pages of other sites can make a browser on this machine send requests here. Those that come by a DNS name that
    resolves to 127.0.0.1 name another host, and the others name the page's origin: both are refused.
    """

    async def authenticate(self, token: str, host: str, origin: str = "") -> Caller:  # noqa: ARG002 - the protocol
        """Return the local administrator."""
        if not loopback.is_loopback(_without_port(host)):
            raise AdminProblem(HTTPStatus.MISDIRECTED_REQUEST, "Host: must be a loopback address or localhost")
        if origin and not loopback.is_loopback(_without_port(origin.partition("://")[2])):
            raise AdminProblem(HTTPStatus.FORBIDDEN, "Origin: a page of another site may not use this server")
        return Caller("local", is_local=True)

    async def may(self, caller: Caller, action: AccessRequest) -> bool:  # noqa: ARG002 - the protocol
        """Return True: every right."""
        return True


class StaticTokenAccess:
    """One token for everything, for installations without an API server that reviews tokens."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(self, token: str, host: str, origin: str = "") -> Caller:  # noqa: ARG002 - the protocol
        """Return the holder of the token."""
        if not hmac.compare_digest(token.encode(), self._token):
            raise unauthorized("the token is wrong")
        return Caller("token", is_local=True)

    async def may(self, caller: Caller, action: AccessRequest) -> bool:  # noqa: ARG002 - the protocol
        """Return True: every right."""
        return True


def token_of(headers: Mapping[str, str]) -> str:
    """Return the bearer token of a request; empty where there is none.

    The API server removes `Authorization` from what it proxies to a Service, so a token for this server may also stand
    in a header of its own (ADR 44). Raises AdminProblem.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if token and scheme.lower() != "bearer":
        raise unauthorized("Authorization: must be a bearer token")
    found = token.strip() or headers.get(names.ADMIN_TOKEN_HEADER.lower(), "").strip()
    if len(found) > MAX_TOKEN or not found.isascii():
        raise unauthorized(f"the token must be ASCII of at most {MAX_TOKEN} characters")
    return found


def unauthorized(detail: str) -> AdminProblem:
    """Return the problem for a caller that is not authenticated."""
    return AdminProblem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})


def _without_port(host: str) -> str:
    """Return the host of a Host header, without port and without brackets around an IPv6 address."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
