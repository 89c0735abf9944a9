"""A fake API server for Secrets and webhook configurations: resource versions, conflicts and JSON patches."""

import json
import re
from typing import TYPE_CHECKING

from aiohttp import web

from tests.webhook import builders
from vgpu.domain.json_types import JsonObject

if TYPE_CHECKING:
    from collections.abc import Callable


class FakeApi:
    """Objects by path. `before` runs before each write, so that a test can write first and cause a conflict."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}
        self.writes: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self._version = 0

    def put(self, path: str, obj: JsonObject) -> None:
        self._version += 1
        metadata = {**obj.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**obj, "metadata": metadata}

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        path = re.sub("/secrets$", "", request.path)
        if request.method == "GET":
            found = self.objects.get(path)
            return web.json_response(found) if found else self._status(404, "NotFound")
        body = json.loads(await request.read())
        self.before()
        self.writes.append(f"{request.method} {request.path}")
        if request.method == "PATCH":
            return self._patch(request.path, body)
        return (self._create if request.method == "POST" else self._replace)(request.path, body)

    def _create(self, path: str, body: JsonObject) -> web.Response:
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            return self._status(409, "AlreadyExists")
        self.put(path, body)
        return web.json_response(self.objects[path], status=201)

    def _replace(self, path: str, body: JsonObject) -> web.Response:
        found = self.objects.get(path)
        if found is None:
            return self._status(404, "NotFound")
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return self._status(409, "Conflict")
        self.put(path, body)
        return web.json_response(self.objects[path])

    def _patch(self, path: str, body: list[JsonObject]) -> web.Response:
        test, *steps = body
        if test != {
            "op": "test",
            "path": "/metadata/resourceVersion",
            "value": self.objects[path]["metadata"]["resourceVersion"],
        }:
            return self._status(422, "Invalid")
        self.put(path, builders.apply(steps, self.objects[path]))
        return web.json_response(self.objects[path])

    def _status(self, code: int, reason: str) -> web.Response:
        return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": reason}, status=code)
