"""`POST /simulate`: where pods would be placed that do not exist yet. Nothing is changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response
from msgspec import structs

from extender.admin.answers import schemas
from extender.admin.answers.json_response import answer
from extender.admin.answers.queries import NoQuery
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem, FieldError, bad_field
from extender.admin.routes.context import Called, Context, Using
from extender.admin.security import visibility
from extender.admin.security.access import AccessRequest
from extender.admin.worker.questions import Simulate
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from vgpu.adapters.kubernetes import pod_json
from vgpu.domain import names, object_names
from vgpu.domain.asks import node_rules, translate
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, Namespace
from vgpu.placement import documents
from vgpu.placement.simulate import Wanted
from vgpu.placement.simulated_gangs import Ganged

router = APIRouter(tags=["placement"])

CREATE_PODS: Final = AccessRequest("create", "pods")
SIMULATE: Final = AccessRequest("create", "simulations", names.DOMAIN)  # no resource of the API server
MAX_PODS: Final = 1000


@dataclass(frozen=True, slots=True)
class PodsToPlace:
    """One kind of pod to place."""

    namespace: Namespace
    name: str
    pod: WatchedPod
    request: PodRequest
    rules: NodeRules
    count: int


@router.post("/simulate", response_model=schemas.SimulationSchema)
async def simulate(
    request: Request, context: Using, caller: Called, body: schemas.SimulateBodySchema,
    query: Annotated[NoQuery, Query()],  # noqa: ARG001 - refuses unknown parameters
) -> Response:  # fmt: skip
    """Say where these pods would be placed, one after the other, changing nothing.

    The pods of a gang are placed together, or none of them is. Pods of the gang that exist already are not counted.

    Needs the right to create pods, or simulations.vgpu.io, in their namespaces. Foreign resource names are translated
    as at admission.
    """
    if sum(entry.count for entry in body.pods) > MAX_PODS:
        raise bad_field("pods", f"more than {MAX_PODS} pods in all; simulate fewer")
    snapshot = await context.snapshot()
    entries = list(_read(body, context, snapshot))
    for namespace in sorted({entry.namespace for entry in entries}):
        if not await context.access.may(caller, replace(SIMULATE, namespace=namespace)):
            await visibility.require(context.access, caller, replace(CREATE_PODS, namespace=namespace))
    beside = await context.requests([entry.pod for entry in entries])
    wanted = [
        Wanted(now or entry.request, entry.pod.host, _gang(entry.pod), entry.rules)
        for entry, now in zip(entries, beside, strict=True)
    ]
    counted = [pod for entry, pod in zip(entries, wanted, strict=True) for _ in range(entry.count)]
    question = Simulate(counted, snapshot.policies)
    found = msgspec.json.decode(await context.placement.ask(snapshot, question, caller.name))
    named = [_named(entry, number) for entry in entries for number in range(1, entry.count + 1)]
    landings = [{**name, **landing} for name, landing in zip(named, found["pods"], strict=True)]
    placed = sum(bool(row["node"]) for row in landings)
    return answer(request, {"placed": placed, "notPlaced": len(landings) - placed, **found, "pods": landings})


def _read(body: schemas.SimulateBodySchema, context: Context, snapshot: ClusterSnapshot) -> Iterator[PodsToPlace]:
    """Read the manifests. Raises AdminProblem that names every field that is wrong."""
    errors: list[FieldError] = []
    for index, entry in enumerate(body.pods):
        read = _pod(entry.pod, entry.count, context, snapshot)
        if isinstance(read, PodsToPlace):
            yield read
        else:
            errors += [FieldError(f"pods[{index}].pod.{field}", why) for field, why in read]
    if errors:
        raise AdminProblem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{errors[0].field}: {errors[0].detail}", errors)


def _pod(
    manifest: Mapping[str, Any], count: int, context: Context, snapshot: ClusterSnapshot
) -> PodsToPlace | list[tuple[str, str]]:
    try:
        pod = pod_json.decode(msgspec.json.encode(manifest))
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError) as error:
        return [("", f"is no readable Pod: {error}")]
    metadata = pod.get("metadata") or {}
    namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
    if not object_names.is_label(namespace):
        return [("metadata.namespace", "must be a DNS label: at most 63 of a-z, 0-9 and -, such as team-a")]
    name = metadata.get("name") or "pod"
    if not object_names.is_subdomain(name):
        return [("metadata.name", "must be a DNS subdomain: at most 253 of a-z, 0-9, - and ., such as train-1")]
    named = translate.translate(pod, lambda: _cards(snapshot), context.gpushare_unit_mib, snapshot.slice_mib)
    if named.problems:
        return [(problem.field, problem.why) for problem in named.problems]
    if named.asked is None:
        return [("spec.containers", "no container asks for a GPU")]
    asking = structs.replace(PodReader().decoded(named.pod), uid="", namespace=namespace)
    return PodsToPlace(namespace, name, asking, named.asked, node_rules.of_pod(manifest.get("spec") or {}), count)


def _gang(pod: WatchedPod) -> Ganged | None:
    """Return a pod's gang; of a gang whose size a PodGroup says, all pods of the simulation start together."""
    named = pod.parsed.gang
    return Ganged(f"{pod.namespace}/{named.name}", named.size) if named is not None else None


def _cards(snapshot: ClusterSnapshot) -> list[Any]:
    return [state.card for view in snapshot.views.values() for state in view.state.cards]


def _named(entry: PodsToPlace, number: int) -> dict[str, Any]:
    asked = documents.asked(entry.request)
    return {"namespace": entry.namespace, "name": entry.name, "number": number, "requested": asked}
