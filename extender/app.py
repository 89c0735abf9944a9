"""The HTTP side of the scheduler verbs: raw bodies in, bytes out; no verb answers before every watch has its list."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request, Response

import vgpu
from extender import explain, objects, wire
from extender.bind import Binder
from extender.cluster import Cluster
from extender.event_recorder import EventRecorder
from extender.filter import Filter
from extender.prioritize import prioritize
from extender.watches import Synced
from extender.wire import MalformedCall
from vgpu.placement.policies import DefaultPolicies

JSON: Final = "application/json"
NOT_READY: Final = "the first lists of the cluster are not complete"

Handle = Callable[[bytes], Awaitable[bytes]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verbs:
    """The verbs, bytes to bytes, with what they use."""

    cluster: Cluster
    node_filter: Filter
    defaults: DefaultPolicies
    binder: Binder
    recorder: EventRecorder

    async def filter(self, body: bytes) -> bytes:
        """Answer `/filter`; where no node fits, an Event tells the pod's owner why."""
        call = wire.call(body)
        pod = objects.pod(dict(call.pod))
        verdict = self.node_filter.nodes(pod, call.nodes)
        if verdict.refused and not verdict.fitting and not self.recorder.rests(pod.uid):
            self.recorder.record(pod.reference, *explain.why_pending(pod, verdict, self.cluster))
        return wire.filter_result(verdict)

    async def prioritize(self, body: bytes) -> bytes:
        """Answer `/prioritize`."""
        call = wire.call(body)
        return wire.host_priorities(prioritize(objects.pod(dict(call.pod)), call.nodes, self.cluster, self.defaults))

    async def bind(self, body: bytes) -> bytes:
        """Answer `/bind`."""
        args = wire.bind_args(body)
        refusal = await self.binder.bind(args)
        outcome = f"refused: {refusal}" if refusal else "bound"
        log.info("bind %s/%s to %s: %s", args.pod_namespace, args.pod_name, args.node, outcome)
        return wire.error(refusal)


def app(verbs: Verbs, watches: Synced, clock: Callable[[], float]) -> FastAPI:
    """Build the application: the verbs, `/healthz` (the process answers) and `/readyz` (every watch has its list).

    `clock` (monotonic, in seconds) times each call, for the log at level debug.
    """
    api = FastAPI(title="vgpushare extender", version=vgpu.__version__)
    for name, handle in (("filter", verbs.filter), ("prioritize", verbs.prioritize), ("bind", verbs.bind)):
        timed = _timed(name, handle, clock)
        api.add_api_route(f"/{name}", _endpoint(watches, timed), methods=["POST"], name=name)

    @api.get("/healthz")
    async def healthz() -> Response:
        return Response("ok", media_type="text/plain")

    @api.get("/readyz")
    async def readyz() -> Response:
        if watches.is_synced:
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
