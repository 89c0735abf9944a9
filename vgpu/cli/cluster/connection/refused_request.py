"""What an answer other than a success means: the admin REST's own, or that of the API server before it.

The API server answers with a Status, the admin REST with problem details: so a 404 of the API server never means that
the admin REST does not know a pod.
"""

import http.client
import json
import re
import ssl
import urllib.error
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from vgpu.cli.cluster.connection.rest_endpoint import RestEndpoint
from vgpu.cli.failure import ANSWER_IS_NO, NO_ANSWER, NOT_ALLOWED, NOT_FOUND, WRONG_USAGE, CommandFailed
from vgpu.domain import names

MAX_ANSWER: Final = 1 << 20  # bytes
_CODES: Final[Mapping[int, int]] = {
    HTTPStatus.UNAUTHORIZED: NOT_ALLOWED,
    HTTPStatus.FORBIDDEN: NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: NOT_FOUND,
    HTTPStatus.BAD_REQUEST: WRONG_USAGE,
    HTTPStatus.UNPROCESSABLE_ENTITY: WRONG_USAGE,
    HTTPStatus.CONFLICT: ANSWER_IS_NO,
}
_NOT_INSTALLED: Final = re.compile(rf'(services|serviceaccounts) "{names.ADMIN_SERVICE}" not found')
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})  # of OpenSSL
_INSTALL: Final = (
    "vgpushare is not installed in this namespace: install it (manifests/README.md), or name its namespace "
    "with --admin-namespace"
)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An answer: its status code and reason, what it says, and whether the API server wrote it."""

    code: int
    reason: str
    said: str = ""
    errors: tuple[str, ...] = ()
    is_of_api_server: bool = False


def refused(error: urllib.error.HTTPError, endpoint: RestEndpoint) -> CommandFailed:
    """Return the failure that an answer describes; its exit code is NOT_FOUND only where an object does not exist."""
    answer = _read(error)
    if (absent := _absent(answer, endpoint)) is not None:
        return CommandFailed(absent, NO_ANSWER)
    message = answer.said or f"{endpoint.name}: {answer.code} {answer.reason}"
    lines = [text for text in (*answer.errors, *_next_steps(answer, endpoint)) if text != answer.said]
    return CommandFailed("\n  ".join([message, *lines]), _CODES.get(answer.code, NO_ANSWER))


def unanswered(error: Exception, endpoint: RestEndpoint) -> CommandFailed:
    """Return the failure of a request that got no answer, with the next step."""
    reason = getattr(error, "reason", None) or error
    advice = _why_unanswered(reason, endpoint)
    return CommandFailed(f"{endpoint.name} does not answer: {reason}" + (f"\n  {advice}" if advice else ""), NO_ANSWER)


def _why_unanswered(reason: object, endpoint: RestEndpoint) -> str:
    scheme, _, site = endpoint.name.partition("://")
    if isinstance(reason, ssl.SSLCertVerificationError):
        return (
            "its certificate is of no CA that is known here: give --certificate-authority, or a kubeconfig with the CA"
        )
    if isinstance(reason, ssl.SSLError) and reason.reason in _NO_TLS and scheme == "https":
        return f"it does not speak TLS; without TLS: http://{site}"
    if isinstance(reason, http.client.BadStatusLine) and scheme == "http":
        return f"it does not speak HTTP without TLS: write https://{site}"
    if endpoint.is_behind_api_server and not isinstance(reason, TimeoutError):
        return "the API server itself does not answer: see kubectl cluster-info, or name another by --context"
    if endpoint.named_by and not endpoint.advice:
        port = f"its port is {names.ADMIN_PORT}"
        return f"see whether the admin REST listens there ({port}), or leave out {endpoint.named_by}"
    return endpoint.advice


def _read(error: urllib.error.HTTPError) -> _Refusal:
    try:
        body = json.loads(error.read(MAX_ANSWER))
        said = str(body.get("detail") or body.get("message") or "")
        errors = tuple(f"{problem['field']}: {problem['detail']}" for problem in body.get("errors") or ())
        return _Refusal(error.code, error.reason, said, errors, body.get("kind") == "Status")
    except (ValueError, AttributeError, KeyError, TypeError, OSError, RecursionError):
        return _Refusal(error.code, error.reason)


def _absent(answer: _Refusal, endpoint: RestEndpoint) -> str | None:
    """Return what is said where no admin REST answered; None where it did, or where it was not asked."""
    if answer.code != HTTPStatus.NOT_FOUND:
        return None
    if _NOT_INSTALLED.search(answer.said) or (endpoint.is_behind_api_server and answer.is_of_api_server):
        return f"{answer.said}\n  {_INSTALL}"
    if not endpoint.is_admin_rest:
        return None
    if not answer.said:  # the admin REST says what is missing
        why = f"{endpoint.name} is not the admin REST: it answers {answer.code} {answer.reason}"
        return f"{why}. The admin REST has port {names.ADMIN_PORT}; see --server"
    if answer.is_of_api_server:
        why = f"{endpoint.name} is a Kubernetes API server and not the admin REST: it answers {answer.said!r}"
        advice = "leave out --server, or name the API server by --kubeconfig and --context: vgpu asks through it"
        return f"{why}\n  {advice}"
    return None


def _next_steps(answer: _Refusal, endpoint: RestEndpoint) -> Iterator[str]:
    if answer.code == HTTPStatus.SERVICE_UNAVAILABLE and endpoint.advice:
        yield endpoint.advice
    if answer.code == HTTPStatus.FORBIDDEN and endpoint.is_admin_rest:
        role = f"the Role {names.ADMIN_CLIENT_ROLE} in namespace {endpoint.namespace}"
        is_of_proxy = endpoint.is_behind_api_server and answer.is_of_api_server
        yield f"ask an administrator for {role if is_of_proxy else 'this right'} (docs/admin.md, Rights)"
    if answer.code == HTTPStatus.UNAUTHORIZED and answer.is_of_api_server:
        yield "the API server does not know the user of the kubeconfig: log in again, or see kubectl auth whoami"
