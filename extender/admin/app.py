"""The admin's ASGI application: routes, errors, the administrators' page, and the OpenAPI document."""

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import vgpu
from extender.admin import problems
from extender.admin.answers import permitted_fields, schemas, wrong_values
from extender.admin.problems import AdminProblem, FieldError
from extender.admin.routes import (
    card_routes,
    docs_page,
    event_routes,
    group_routes,
    history_routes,
    inventory_routes,
    pod_routes,
    series_routes,
    simulate_routes,
    summary_routes,
    version_routes,
)
from extender.admin.routes.context import Context
from extender.admin.security.body_limit import MAX_BODY, BodyLimit
from extender.web import routes as web

PREFIX: Final = "/api/v1"
ROUTES: Final = (
    inventory_routes, pod_routes, group_routes, simulate_routes, card_routes, event_routes, summary_routes,
    history_routes, series_routes, version_routes,
)  # fmt: skip
DESCRIPTION: Final = (
    "What administrators and tenants ask about cards, pods and waiting pods. Amounts of memory are MiB, amounts of "
    "time percent of one card. Lists are filtered, sorted (`sort`), paged (`cursor`) and cut to fields (`fields`). "
    "Answers have an ETag. Unknown parameters are refused. Errors are problem details (RFC 9457)."
)
ERRORS: Final[Mapping[int | str, dict[str, Any]]] = {
    status: {
        "description": text,
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemSchema"}}},
    }
    for status, text in {
        400: "the request's body is not JSON",
        401: "no token, or a token that is not accepted",
        403: "the caller lacks the right, which the detail names",
        404: "no such object, or none that the caller may see",
        409: "the object changes all the time",
        413: f"the body is longer than {MAX_BODY} bytes",
        421: "on loopback: the Host header names another host",
        422: "a parameter or a field of the body is wrong; `errors` names it",
        429: "too many requests; Retry-After says when to try again",
        502: "the API server did not carry out the change",
        503: "not ready yet, or too much to do; Retry-After says when to try again",
    }.items()
}


def build(context: Context) -> ASGIApp:
    """Return the application."""
    app = FastAPI(
        title="vgpushare admin",
        version=vgpu.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        separate_input_output_schemas=False,
    )
    app.state.context = context
    for routes in ROUTES:
        app.include_router(routes.router, prefix=PREFIX, responses=dict(ERRORS))
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    for route in app.routes:
        if isinstance(route, APIRoute):
            route.operation_id = route.name
    app.include_router(web.router)
    _add_pages(app)
    return BodyLimit(app)


def _add_pages(app: FastAPI) -> None:
    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return Response("ok", media_type="text/plain")

    @app.get(f"{PREFIX}/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(docs_page.html(app.openapi()), media_type="text/html", headers=docs_page.HEADERS)

    made = app.openapi

    def with_problems() -> dict[str, Any]:
        document = made()
        described = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (schemas.ProblemSchema, schemas.FieldErrorSchema):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            described.setdefault(model.__name__, {key: value for key, value in schema.items() if key != "$defs"})
        return document

    app.openapi = with_problems  # type: ignore[method-assign]


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, AdminProblem)  # noqa: S101 - the handler of this type
    return problems.response(error, request.url.path)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - the handler of this type
    found = error.errors()
    if any(detail["type"] == "json_invalid" for detail in found):
        return problems.response(_no_json(f" at character {found[0]['loc'][-1]}"), request.url.path)
    errors = [FieldError(_path(detail["loc"]), wrong_values.words(detail, _known(request, detail))) for detail in found]
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    detail = f"{errors[0].field}: {errors[0].detail}" if errors else "the request cannot be read"
    return problems.response(AdminProblem(status, detail, errors), request.url.path)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler of this type
    if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's, of a body that Python's JSON parser cannot take
        return problems.response(_no_json(", is not UTF-8, or is nested too deeply"), request.url.path)
    detail = error.detail if error.status_code != HTTPStatus.NOT_FOUND else f"there is no {request.url.path}"
    return problems.response(
        AdminProblem(HTTPStatus(error.status_code), detail, headers=error.headers), request.url.path
    )


def _no_json(why: str) -> AdminProblem:
    return problems.bad_field("body", f"is no readable JSON{why}", HTTPStatus.BAD_REQUEST)


def _known(request: Request, error: Mapping[str, Any]) -> Collection[str] | None:
    """Return the names that are permitted beside a name that is not known; None where that cannot be said."""
    place, *steps = error["loc"]
    dependant = getattr(request.scope.get("route"), "dependant", None)
    params = {"query": "query_params", "body": "body_params"}.get(place)
    if error["type"] != "extra_forbidden" or dependant is None or params is None:
        return None
    return permitted_fields.fields_at([param.field_info.annotation for param in getattr(dependant, params)], steps)


def _path(loc: tuple[Any, ...]) -> str:
    """Write a pydantic location as a path: `pods[0].count`; `limit` for a query parameter."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc[1:]]
    return "".join(parts).removeprefix(".") or str(loc[0])


_HANDLERS: Final[Mapping[type[Exception], Any]] = {
    AdminProblem: _on_problem,
    RequestValidationError: _on_invalid,
    HTTPException: _on_http,
}
