"""Errors of the REST, as problem details of RFC 9457.

https://www.rfc-editor.org/rfc/rfc9457
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.responses import Response

from vgpu.domain.problem import MAX_FIELD, clipped

MEDIA_TYPE: Final = "application/problem+json"
MAX_ERRORS: Final = 50
MAX_DETAIL: Final = 3_000  # characters


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong: its path, and what to write instead."""

    field: str
    detail: str


class AdminProblem(Exception):
    """An outcome that is no success: its HTTP status, what happened, and which fields caused it."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        errors: Iterable[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)[:MAX_ERRORS]
        self.headers = dict(headers or {})


def bad_field(field: str, detail: str, status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY) -> AdminProblem:
    """Return the problem of one wrong field."""
    return AdminProblem(status, f"{field}: {detail}", [FieldError(field, detail)])


def not_found(what: str) -> AdminProblem:
    """Return the problem of an object that does not exist, or that the caller must not see."""
    return AdminProblem(HTTPStatus.NOT_FOUND, f"{what} does not exist, or you may not see it")


def forbidden(caller: str, action: str) -> AdminProblem:
    """Return the problem of a caller without a right."""
    return AdminProblem(HTTPStatus.FORBIDDEN, f"{caller} may not {action}")


def response(problem: AdminProblem, instance: str) -> Response:
    """Write a problem; `instance` is the path of the request."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": problem.status.phrase,
        "status": problem.status.value,
        "detail": clipped(problem.detail, MAX_DETAIL),
        "instance": instance,
    }
    if problem.errors:
        body["errors"] = [_shown(error) for error in problem.errors]
    return Response(msgspec.json.encode(body), problem.status, problem.headers, MEDIA_TYPE)


def _shown(error: FieldError) -> dict[str, str]:
    return {"field": clipped(error.field, MAX_FIELD), "detail": clipped(error.detail, MAX_DETAIL)}
