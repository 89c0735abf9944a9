"""The HTTP side of the scheduler verbs: raw bodies in, bytes out; no verb answers before every watch has its list."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from extender.effects.event_recorder import EventRecorder
from extender.explain.explanations import Explanations
from extender.explain.last_decisions import LastDecisions
from extender.gangs.tracker import GangTracker
from extender.history.recording.feed import Feed
from extender.index.answer import IndexAnswer
from extender.metrics import VerbMetrics
from extender.protocol import asgi, wire
from extender.protocol.asgi import HttpRequest, Reply, Route
from extender.protocol.wire import MalformedCall
from extender.state import gang_members
from extender.state.cluster import Cluster
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from extender.verbs.bind import Binder
from extender.verbs.filter import Filter
from extender.verbs.preempt import Preemption
from extender.verbs.prioritize import prioritize
from extender.watch.watches import Synced
from vgpu.adapters import deep_json, http_body
from vgpu.domain.cards.reasons import UNRESOLVABLE, Reason
from vgpu.domain.identifiers import NO_NODE
from vgpu.placement.policies import DefaultPolicies

MAX_BODY: Final = 8 << 20  # a pod has at most 3 MiB, and 15,000 node names of 253 characters have 4 MiB
RESOLVABLE: Final = frozenset(Reason) - UNRESOLVABLE
NOT_READY: Final = "the first lists of the cluster are not complete"

Handle = Callable[[bytes], Awaitable[bytes]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerVerbs:
    """The verbs, bytes to bytes, with what they use."""

    reader: PodReader
    cluster: Cluster
    node_filter: Filter
    defaults: DefaultPolicies
    binder: Binder
    recorder: EventRecorder
    preemption: Preemption
    history: Feed
    metrics: VerbMetrics
    gangs: GangTracker
    decisions: LastDecisions
    explanations: Explanations

    async def filter(self, body: bytes) -> bytes:
        """Answer `/filter`; where no node fits, an Event tells the pod's owner why."""
        call = await deep_json.decode(wire.call, body)
        pod = self.reader.decoded(call.pod)
        answer = await self.node_filter.judge(pod, call.nodes, asyncio.sleep, call.full)
        refused = answer.reasons
        self.history.filtered(pod, refused, fits=answer.fits)
        if refused and not answer.fits:
            self._unplaced(pod, answer)
        awaited = self.preemption.awaited_node(pod) if refused else NO_NODE
        return wire.filter_result(answer.fitting(), answer.refused(), awaited, call.full)

    def _unplaced(self, pod: WatchedPod, answer: IndexAnswer) -> None:
        """Count a pod that no node can take, let it preempt, and have its owner told why it waits.

        A member of a gang that the watch has not shown yet is explained when kube-scheduler has marked it: until then
        its gang seems to have a pod less.
        """
        self.metrics.unplaced(answer.reasons)
        self.decisions.refused(pod, answer.reasons)
        self.preemption.note(pod, answer.refused_for(RESOLVABLE))
        key = gang_members.key_of(pod)
        if key is not None and pod.uid not in self.cluster.objects.pods:
            return
        if key is not None and not pod.parsed.problems and (waits := self.gangs.why(key)):
            self.recorder.record(pod.reference, *waits)
        elif not self.recorder.rests(pod.uid):
            self.explanations.add(pod, answer)

    async def prioritize(self, body: bytes) -> bytes:
        """Answer `/prioritize`."""
        call = await deep_json.decode(wire.call, body)
        pod = self.reader.decoded(call.pod)
        return wire.host_priorities(await prioritize(pod, call.nodes, self.cluster, self.defaults, asyncio.sleep))

    async def preempt(self, body: bytes) -> bytes:
        """Answer `/preempt`."""
        args = await deep_json.decode(wire.preemption_args, body)
        return wire.preemption_result(await self.preemption.verb(self.reader.decoded(args.pod), args.victims))

    async def bind(self, body: bytes) -> bytes:
        """Answer `/bind`."""
        args = await deep_json.decode(wire.bind_args, body)
        refusal = await self.binder.bind(args)
        self.metrics.bound(refusal)
        outcome = f"refused: {refusal}" if refusal else "bound"
        log.info("bind %s/%s to %s: %s", args.pod_namespace, args.pod_name, args.node, outcome)
        return wire.error(refusal)


def app(verbs: SchedulerVerbs, watches: Synced, clock: Callable[[], float]) -> ASGIApp:
    """Build the application: the verbs, `/healthz` (the process answers) and `/readyz` (every watch has its list).

    `clock` (monotonic, in seconds) times each call, for the metrics and for the log at level debug.
    """
    handles = {
        "filter": verbs.filter,
        "prioritize": verbs.prioritize,
        "preempt": verbs.preempt,
        "bind": verbs.bind,
    }
    routes = {"/healthz": Route("GET", _healthy), "/readyz": Route("GET", _readiness(watches))}
    for name, handle in handles.items():
        timed = _timed(name, handle, clock, verbs.metrics)
        routes[f"/{name}"] = Route("POST", _verb(watches, timed, partial(verbs.metrics.failed, name)))
    return asgi.application(routes)


async def _healthy(_: HttpRequest) -> Reply:
    return Reply(b"ok", asgi.TEXT)


def _readiness(watches: Synced) -> Callable[[HttpRequest], Awaitable[Reply]]:
    async def readiness(_: HttpRequest) -> Reply:
        if watches.is_synced:
            return Reply(b"ok", asgi.TEXT)
        return Reply(NOT_READY.encode(), asgi.TEXT, HTTPStatus.SERVICE_UNAVAILABLE)

    return readiness


def _timed(name: str, handle: Handle, clock: Callable[[], float], metrics: VerbMetrics) -> Handle:
    async def timed(body: bytes) -> bytes:
        started = clock()
        answer = await handle(body)
        took = clock() - started
        metrics.took(name, took)
        log.debug("%s took %.3f ms", name, took * 1000)
        return answer

    return timed


def _verb(watches: Synced, handle: Handle, failed: Callable[[str], None]) -> Callable[[HttpRequest], Awaitable[Reply]]:
    def refused(reason: str, message: str, status: HTTPStatus) -> Reply:
        failed(reason)
        return Reply(wire.error(message), status=status)

    async def verb(request: HttpRequest) -> Reply:
        if not watches.is_synced:
            return refused("not_ready", NOT_READY, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            body = await http_body.read(request.chunks, MAX_BODY, request.said_length)
            if body.is_too_long:
                too_long = f"the body is longer than {MAX_BODY} bytes"
                return refused("too_long", too_long, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return Reply(await handle(body.data))
        except MalformedCall as error:
            return refused("malformed", str(error), HTTPStatus.BAD_REQUEST)
        except ClientDisconnect:
            return refused("disconnected", "", HTTPStatus.BAD_REQUEST)

    return verb
