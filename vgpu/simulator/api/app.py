"""The API server over HTTP: paths and parameters in, JSON out, every error a Status object."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import openapi, patch, resources, scale, selectors, shapes, tables, watch, wire
from vgpu.simulator.api.cluster import InMemoryCluster
from vgpu.simulator.api.resources import PODS, Resource, Target

MAX_DIGITS: Final = 18  # of a number in a query: it fits in 64 bits
WATCH_S: Final = 1800.0  # the real server ends a watch after 30 to 60 minutes
_PATCHES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "application/merge-patch+json": patch.merge,
    "application/json-patch+json": patch.json_patch,
    "application/strategic-merge-patch+json": patch.strategic,
    "application/apply-patch+yaml": patch.strategic,
}
_CONTROLLED: Final = ("apps", "batch")  # groups whose objects stand for pods that a controller makes
NO_CONTROLLERS: Final = "It has no controllers, so only pods run: create them by `kubectl run` or `kubectl apply -f`"
APPLY: Final = "application/apply-patch+yaml"


def build(cluster: InMemoryCluster) -> Starlette:
    """Return the ASGI application that serves a cluster."""
    api = _Api(cluster)
    discovery = [
        Route("/api", lambda _: _json(wire.api_versions())),
        Route("/apis", lambda _: _json(wire.api_groups(api.custom()))),
        Route("/version", lambda _: _json({"major": "1", "minor": "36", "gitVersion": "v1.36.0-simulated"})),
        *(Route(path, lambda _: PlainTextResponse("ok")) for path in ("/healthz", "/livez", "/readyz")),
        Route("/openapi/v3", api.openapi_index),
        Route("/openapi/v3/api/{version}", api.openapi),
        Route("/openapi/v3/apis/{group}/{version}", api.openapi),
        Route("/api/{version}", api.discover),
        Route("/apis/{group}/{version}", api.discover),
    ]
    verbs = {"GET": api.read, "POST": api.create, "PUT": api.update, "PATCH": api.patch, "DELETE": api.delete}
    routes = [Route("/{path:path}", verb, methods=[method]) for method, verb in verbs.items()]
    unreadable = dict.fromkeys((msgspec.DecodeError, RecursionError, UnicodeError), _unreadable)
    handlers: Any = {KubernetesError: _refuse, **unreadable}
    return Starlette(routes=[*discovery, *routes], exception_handlers=handlers)


class _Api:
    def __init__(self, cluster: InMemoryCluster) -> None:
        self._cluster = cluster

    def custom(self) -> list[Resource]:
        crds = self._cluster.store.objects(resources.CRDS.name)
        return [resource for crd in crds for resource in resources.defined(crd)]

    async def discover(self, request: Request) -> Response:
        group, version = request.path_params.get("group", ""), request.path_params["version"]
        return _json(wire.api_resources(group, version, self.custom()))

    async def openapi_index(self, _: Request) -> Response:
        return _json(openapi.index((*resources.BUILTIN, *self.custom())))

    async def openapi(self, request: Request) -> Response:
        group, version = request.path_params.get("group", ""), request.path_params["version"]
        crds = {obj["metadata"]["name"]: obj for obj in self._cluster.store.objects(resources.CRDS.name)}
        return _json(openapi.document(group, version, (*resources.BUILTIN, *self.custom()), crds))

    async def read(self, request: Request) -> Response:
        target, query = self._target(request), request.query_params
        as_table = self._as_table(target, request)
        if target.name and target.subresource in ("", "status"):
            obj = self._cluster.get(target)
            return _json(as_table([obj], {"resourceVersion": obj["metadata"]["resourceVersion"]}) if as_table else obj)
        if target.subresource == "scale":
            return _json(scale.of(self._cluster.get(target)))
        matches = selectors.parse(target.resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if target.name:
            raise KubernetesError(404, "NotFound", f"the simulator has no subresource {target.subresource}")
        if query.get("watch") in ("1", "true"):
            clock = asyncio.get_running_loop().time
            shown = (lambda obj: as_table([obj], {})) if as_table else None
            events = watch.lines(self._cluster.store, _watch_request(target, matches, query), clock, shown)
            return StreamingResponse(events, media_type="application/json")
        page = self._page(target, matches, query)
        return _json(as_table(page["items"], page["metadata"]) if as_table else page)

    def _as_table(
        self, target: Target, request: Request
    ) -> Callable[[list[JsonObject], JsonObject], JsonObject] | None:
        """Return what makes a Table of objects and their list's metadata, where the client asks for one."""
        if tables.ACCEPTED not in request.headers.get("accept", ""):
            return None
        crd = self._cluster.find(Target(resources.CRDS, name=target.resource.name))
        columns = tables.columns_of(target.resource, crd)
        return lambda objects, metadata: tables.table(columns, objects, metadata, self._cluster.now())

    async def create(self, request: Request) -> Response:
        target, body = self._target(request), await _object(request)
        match target:
            case Target(name="", subresource=""):
                return await self._created(target, body)
            case Target(resource=resources.PODS, subresource="binding"):
                await self._cluster.bind(target, body)
            case Target(resource=resources.PODS, subresource="eviction"):
                options = shapes.object_of(body.get("deleteOptions") or {})
                await self._cluster.delete(Target(PODS, target.namespace, target.name), options)
            case _:
                raise KubernetesError(405, "MethodNotAllowed", "the server does not allow this method on the resource")
        return _json(wire.success(target), 201)

    async def update(self, request: Request) -> Response:
        target, body = self._target(request), await _object(request)
        if target.subresource == "scale":
            return _json(scale.of(await self._cluster.update(target, scale.scaled(self._cluster.get(target), body))))
        return _json(await self._cluster.update(target, body))

    async def patch(self, request: Request) -> Response:
        target, kind = self._target(request), request.headers.get("content-type", "").partition(";")[0]
        if kind not in _PATCHES:
            why = f"the body of the request was in an unknown format: {kind}"
            raise KubernetesError(415, "UnsupportedMediaType", why)
        change, body = _PATCHES[kind], msgspec.json.decode(await request.body())
        shapes.check_depth(body)
        if kind == APPLY and not target.subresource and self._cluster.find(target) is None:
            return await self._created(target, patch.merge(shapes.object_of(body), {"metadata": {"name": target.name}}))
        return _json(await self._cluster.patch(target, lambda old: change(old, body)))

    async def delete(self, request: Request) -> Response:
        target, options = self._target(request), await _object(request)
        if "gracePeriodSeconds" in request.query_params:
            options["gracePeriodSeconds"] = _integer(request.query_params["gracePeriodSeconds"])
        return _json(await self._cluster.delete(target, options))

    async def _created(self, target: Target, body: JsonObject) -> Response:
        """Create an object; the answer has the warnings of webhooks, and of what the simulator does not do."""
        warnings: list[str] = []
        answer = _json(await self._cluster.create(target, body, warnings.append), 201)
        if target.resource.group in _CONTROLLED:
            warnings.append(f"the simulator made no pods for this object. {NO_CONTROLLERS}")
        for warning in warnings:
            answer.headers.append("Warning", wire.warning(warning))
        return answer

    def _target(self, request: Request) -> Target:
        if "dryRun" in request.query_params:
            raise KubernetesError(400, "BadRequest", "the simulator does not implement dryRun")
        return resources.parse(request.url.path, self._cluster.resource)

    def _page(self, target: Target, matches: selectors.Matches, query: Mapping[str, str]) -> JsonObject:
        store, name = self._cluster.store, target.resource.name
        version, last = store.version, None
        if query.get("continue"):
            version, last = wire.read_token(query["continue"])
        rest = wire.after(store.at(name, version, target.namespace), last)
        selected = rest if matches is selectors.everything else [obj for obj in rest if matches(obj)]
        return wire.page(target, selected, version, _integer(query.get("limit")))


def _watch_request(target: Target, matches: selectors.Matches, query: Mapping[str, str]) -> watch.WatchRequest:
    version = query.get("resourceVersion", "")
    initial = query.get("sendInitialEvents") == "true"
    bookmarks = query.get("allowWatchBookmarks") in ("1", "true")
    return watch.WatchRequest(
        target=target,
        matches=matches,
        version=None if initial or version in ("", "0") else _integer(version),
        bookmarks=bookmarks,
        initial_end=initial and bookmarks,
        timeout_s=_integer(query.get("timeoutSeconds")) or WATCH_S,
    )


def _integer(text: str | None) -> int:
    """Read a number of a query; 0 where the parameter is missing."""
    if text and not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise KubernetesError(400, "BadRequest", f"{text!r} is no number")
    return int(text or 0)


async def _object(request: Request) -> JsonObject:
    """Read the body; an empty object where it is missing."""
    body = await request.body()
    kind = request.headers.get("content-type", "application/json").partition(";")[0]
    if body and kind != "application/json":
        hint = "add `--dry-run=client -o yaml | kubectl apply -f -` to the command"
        why = f"the simulator reads JSON, not {kind}; {hint}. {NO_CONTROLLERS}"
        raise KubernetesError(415, "UnsupportedMediaType", why)
    return msgspec.json.decode(body or b"{}", type=dict[str, Any])


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def _refuse(_: Request, error: KubernetesError) -> Response:
    return _json(wire.failure(error), error.status)


async def _unreadable(request: Request, error: Exception) -> Response:
    return await _refuse(
        request, KubernetesError(400, "BadRequest", f"the body of the request cannot be read: {error}")
    )
