"""Finds the admin REST: `--server`, the environment, a kubeconfig, or this machine's `make run`.

With a kubeconfig, requests go through the API server's service proxy, so that no port is forwarded and the API server
checks who may reach the Service. The API server removes `Authorization` before it passes a request on, so the token
goes in a header of its own too (ADR 44). A user with a client certificate has no token: then one is requested for the
account `vgpu-admin`, which is good for the admin REST only.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from vgpu.adapters import kubeconfig, listening
from vgpu.adapters.kubeconfig import Credentials, Kubeconfig, KubeconfigError, UnreadableCredentials
from vgpu.adapters.listening import ListenAddress
from vgpu.cli.cluster.connection import credentials, server_url
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.connection.rest_endpoint import PREFIX, RestEndpoint
from vgpu.cli.failure import NO_ANSWER, NOT_ALLOWED, WRONG_USAGE, CommandFailed
from vgpu.domain import names

SERVER_ENV: Final = "VGPU_SERVER"
TOKEN_ENV: Final = "VGPU_TOKEN"  # noqa: S105 - the name of a variable
CA_ENV: Final = "VGPU_CERTIFICATE_AUTHORITY"
TOKEN_VALID_S: Final = 600
_WITHOUT_KUBECONFIG: Final = (
    "no kubeconfig was found, so `make run` on this machine was asked: start it, set KUBECONFIG, or give --server"
)


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """What the command line says about the server; None where it says nothing."""

    server: str | None = None
    context: str | None = None
    kubeconfig: Path | None = None
    token: str | None = None
    certificate_authority: Path | None = None
    admin_namespace: str = names.NAMESPACE


@dataclass(frozen=True, slots=True)
class FoundServer:
    """The server, and the namespace of commands that name none."""

    endpoint: RestEndpoint
    namespace: str


def find(choice: ServerChoice, environment: Mapping[str, str], home: Path) -> FoundServer:
    """Return where the admin REST is. Raises CommandFailed."""
    if server := _direct_server(choice, environment):
        return FoundServer(_direct(server, choice, environment), "default")
    paths = [choice.kubeconfig] if choice.kubeconfig else kubeconfig.files(environment, home)
    if not paths:
        if choice.context:
            raise CommandFailed("--context: there is no kubeconfig; set KUBECONFIG, or give --server", WRONG_USAGE)
        local = _direct(_local(), choice, environment)
        return FoundServer(replace(local, advice=_WITHOUT_KUBECONFIG, named_by=""), "default")
    with _told_as_failures():
        config = kubeconfig.load(paths, choice.context)
        return FoundServer(_proxied(config, choice, environment), config.namespace)


def is_direct(choice: ServerChoice, environment: Mapping[str, str]) -> bool:
    """Return whether the server is named by its URL, and not found by a kubeconfig."""
    return bool(_direct_server(choice, environment))


def _direct_server(choice: ServerChoice, environment: Mapping[str, str]) -> str | None:
    return choice.server or (environment.get(SERVER_ENV) if not _names_kubeconfig(choice) else None)


def api_server(choice: ServerChoice, environment: Mapping[str, str], home: Path) -> FoundServer:
    """Return where the API server of a kubeconfig is, for requests with the user's own rights. Raises CommandFailed."""
    paths = [choice.kubeconfig] if choice.kubeconfig else kubeconfig.files(environment, home)
    if not paths:
        raise CommandFailed("there is no kubeconfig; set KUBECONFIG, or give --kubeconfig", WRONG_USAGE)
    with _told_as_failures():
        config = kubeconfig.load(paths, choice.context)
        return FoundServer(_api(config, credentials.of(config.user, environment)), config.namespace)


@contextmanager
def _told_as_failures() -> Iterator[None]:
    try:
        yield
    except UnreadableCredentials as error:
        raise CommandFailed(str(error), NO_ANSWER) from error
    except KubeconfigError as error:
        raise CommandFailed(str(error), WRONG_USAGE) from error


def _local() -> str:
    """Return where `make run` serves the admin REST on this machine, whose loopback may have IPv6 only."""
    return f"http://{ListenAddress(listening.loopback(), names.ADMIN_PORT)}"


def _names_kubeconfig(choice: ServerChoice) -> bool:
    return choice.context is not None or choice.kubeconfig is not None


def _direct(server: str, choice: ServerChoice, environment: Mapping[str, str]) -> RestEndpoint:
    url = server if "://" in server else f"https://{server}"
    token = choice.token or environment.get(TOKEN_ENV, "")
    server_url.check(url, "--server", token)
    authority = choice.certificate_authority or environment.get(CA_ENV)
    try:
        tls = ssl.create_default_context(cafile=str(authority) if authority else None)
    except (OSError, ssl.SSLError) as error:
        raise CommandFailed(f"--certificate-authority: {authority}: {error}", WRONG_USAGE) from error
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    site = url.rstrip("/").removesuffix(PREFIX)
    advice = "" if "://" in server else f"--server without http:// or https:// is https; without TLS: http://{server}"
    named_by = "--server" if choice.server else SERVER_ENV
    tls_used = tls if url.startswith("https") else None
    return RestEndpoint(site + PREFIX, headers, tls_used, site, advice, named_by=named_by)


def _proxied(config: Kubeconfig, choice: ServerChoice, environment: Mapping[str, str]) -> RestEndpoint:
    """Return the endpoint behind the API server's service proxy."""
    shown = credentials.of(config.user, environment)
    api = _api(config, shown)
    token = choice.token or environment.get(TOKEN_ENV, "") or shown.token or _minted(api, shown, choice)
    server_url.check(api.url, "kubeconfig: server", token)
    service = f"https:{names.ADMIN_SERVICE}:{names.ADMIN_PORT}"
    url = f"{api.url}/api/v1/namespaces/{choice.admin_namespace}/services/{service}/proxy{PREFIX}"
    headers = {**api.headers, names.ADMIN_TOKEN_HEADER: token}
    advice = f"see whether the extender runs: kubectl get pods -n {choice.admin_namespace}"
    name = f"{names.ADMIN_SERVICE} behind {api.name}"
    return RestEndpoint(url, headers, api.tls, name, advice, choice.admin_namespace)


def _api(config: Kubeconfig, shown: Credentials) -> RestEndpoint:
    server = str(config.cluster["server"]).rstrip("/")
    server_url.check(server, "kubeconfig: server", shown.token)
    tls = kubeconfig.tls_context(config.cluster, shown) if server.startswith("https") else None
    headers = {"Authorization": f"Bearer {shown.token}"} if shown.token else {}
    return RestEndpoint(server, headers, tls, f"the API server of context {config.context} ({server})")


def _minted(api: RestEndpoint, shown: Credentials, choice: ServerChoice) -> str:
    """Request a token of the account `vgpu-admin` for the admin REST; only those who may create one become its user."""
    if not shown.certificate:
        return ""
    path = f"/api/v1/namespaces/{choice.admin_namespace}/serviceaccounts/{names.ADMIN_ACCOUNT}/token"
    spec = {"audiences": [names.ADMIN_AUDIENCE], "expirationSeconds": TOKEN_VALID_S}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    try:
        return str(Rest(api).post(path, body)["status"]["token"])
    except (CommandFailed, LookupError, TypeError) as error:
        if isinstance(error, CommandFailed) and error.code == NO_ANSWER:
            raise
        raise CommandFailed(
            f"the kubeconfig's user has a client certificate and no token, and no token of the account "
            f"{names.ADMIN_ACCOUNT} can be had: {error}; give --token, or ask an administrator for the right "
            f"to create tokens of that account (create serviceaccounts/token in namespace {choice.admin_namespace})",
            NOT_ALLOWED,
        ) from error
