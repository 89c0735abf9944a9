"""The HTTP side of the scheduler verbs: raw bodies in, bytes out; nothing is answered before the picture is whole."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request, Response

import vgpu
from extender import explain, objects, wire
from extender import filter as filter_verb
from extender import prioritize as prioritize_verb
from extender.bind import Binder
from extender.cluster import Cluster
from extender.event_recorder import Teller
from extender.watches import Synced
from extender.wire import MalformedCall
from vgpu.placement.policies import DefaultPolicies

JSON: Final = "application/json"
NOT_READY: Final = "the first lists of the cluster are not complete"

Handle = Callable[[bytes], Awaitable[bytes]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verbs:
    """The verbs with what they look at: bytes to bytes."""

    cluster: Cluster
    defaults: DefaultPolicies
    binder: Binder
    teller: Teller
    watches: Synced

    async def filter(self, body: bytes) -> bytes:
        """Answer `/filter`; where no node fits, the pod's owner is told why."""
        call = wire.call(body)
        pod = objects.pod(dict(call.pod))
        verdict = filter_verb.filter_nodes(pod, call.nodes, self.cluster, self.defaults)
        if verdict.refused and not verdict.fitting:
            self.teller.tell(pod.reference, *explain.why_pending(pod, verdict, self.cluster))
        return wire.filter_result(verdict)

    async def prioritize(self, body: bytes) -> bytes:
        """Answer `/prioritize`."""
        call = wire.call(body)
        pod = objects.pod(dict(call.pod))
        return wire.host_priorities(prioritize_verb.prioritize(pod, call.nodes, self.cluster, self.defaults))

    async def bind(self, body: bytes) -> bytes:
        """Answer `/bind`."""
        args = wire.bind_args(body)
        refusal = await self.binder.bind(args)
        outcome = f"refused: {refusal}" if refusal else "bound"
        log.info("bind %s/%s to %s: %s", args.pod_namespace, args.pod_name, args.node, outcome)
        return wire.error(refusal)


def app(verbs: Verbs, clock: Callable[[], float]) -> FastAPI:
    """Build the application: the verbs, `/healthz` (the process answers) and `/readyz` (the picture is whole).

    `clock` (monotonic, in seconds) times each call, for the log at level debug.
    """
    api = FastAPI(title="vgpushare extender", version=vgpu.__version__)
    for name, handle in (("filter", verbs.filter), ("prioritize", verbs.prioritize), ("bind", verbs.bind)):
        timed = _timed(name, handle, clock)
        api.add_api_route(f"/{name}", _endpoint(verbs.watches, timed), methods=["POST"], name=name)

    @api.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type="text/plain")

    @api.get("/readyz")
    async def readyz() -> Response:
        if verbs.watches.is_synced:
            return Response("ok", media_type="text/plain")
        return Response(NOT_READY, 503, media_type="text/plain")

    return api


def _timed(name: str, handle: Handle, clock: Callable[[], float]) -> Handle:
    async def timed(body: bytes) -> bytes:
        started = clock()
        answer = await handle(body)
        log.debug("%s took %.3f ms", name, (clock() - started) * 1000)
        return answer

    return timed


def _endpoint(watches: Synced, handle: Handle) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if not watches.is_synced:
            return Response(wire.error(NOT_READY), 503, media_type=JSON)
        try:
            return Response(await handle(await request.body()), media_type=JSON)
        except MalformedCall as error:
            return Response(wire.error(str(error)), 400, media_type=JSON)

    return endpoint
