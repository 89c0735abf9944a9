"""`POST /simulate`: where pods would be placed that do not exist yet. Nothing is changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response
from msgspec import structs

from extender.admin.answers import kept_room, schemas, wrong_values
from extender.admin.answers.json_response import answer
from extender.admin.answers.queries import NoQuery
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem, FieldError, bad_field
from extender.admin.routes.context import Called, Context, Using
from extender.admin.security import visibility
from extender.admin.security.access import AccessRequest, Caller
from extender.admin.worker.questions import Simulate
from extender.state.beside import card_neighbours
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from vgpu.adapters.kubernetes import pod_json
from vgpu.adapters.kubernetes.pod_json import PodJson
from vgpu.domain import names, new_pods, object_names
from vgpu.domain.asks import manifest as asks_manifest
from vgpu.domain.asks import node_rules, other_names, translate
from vgpu.domain.asks.node_rules import NodeRules
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import DEFAULT_NAMESPACE, Namespace
from vgpu.placement import documents
from vgpu.placement.neighbours import CardTenant
from vgpu.placement.simulation.gangs import Ganged
from vgpu.placement.simulation.neighbours import SimulatedIdentity
from vgpu.placement.simulation.simulate import Wanted

router = APIRouter(tags=["placement"])

CREATE_PODS: Final = AccessRequest("create", "pods")
MAX_NAME: Final = 253  # characters of a name that is answered
SIMULATE: Final = AccessRequest("create", "simulations", names.DOMAIN)  # no resource of the API server


@dataclass(frozen=True, slots=True)
class PodsToPlace:
    """One kind of pod to place."""

    namespace: Namespace
    name: str
    pod: WatchedPod
    request: PodRequest
    rules: NodeRules
    count: int


@dataclass(frozen=True, slots=True)
class UnplaceableEntry:
    """Pods that cannot be placed, since their manifest is wrong: each field with the reason."""

    namespace: str
    name: str
    problems: tuple[FieldError, ...]
    count: int


@router.post("/simulate", response_model=schemas.SimulationSchema)
async def simulate(
    request: Request, context: Using, caller: Called, body: schemas.SimulateBodySchema,
    query: Annotated[NoQuery, Query()],  # noqa: ARG001 - refuses unknown parameters
) -> Response:  # fmt: skip
    """Say where these pods would be placed, one after the other, changing nothing.

    The pods of a gang are placed together, or none of them is. Pods of the gang that exist already are not counted.
    Pods whose manifest is wrong are named in the answer, and the others are placed: what the webhook refuses is wrong
    here too. What only the API server knows is not looked at, such as a namespace's quota and its highest priority.
    Room that is kept free for a gang now is not given to the pods, but to those of a higher `spec.priority`; what a
    `priorityClassName` means only the API server knows.

    Needs the right to create pods, or simulations.vgpu.io, in their namespaces. Foreign resource names are translated
    as at admission.
    """
    if sum(_count(entry) or 1 for entry in body.pods) > schemas.MAX_SIMULATED:
        raise bad_field("pods", f"more than {schemas.MAX_SIMULATED} pods in all; simulate fewer")
    snapshot = await context.snapshot()
    read = _read(body, context, snapshot)
    entries = [entry for entry in read if isinstance(entry, PodsToPlace)]
    for namespace in sorted({entry.namespace for entry in entries}):
        if not await context.access.may(caller, replace(SIMULATE, namespace=namespace)):
            await visibility.require(context.access, caller, replace(CREATE_PODS, namespace=namespace))
    wanted = [_wanted(entry, index, snapshot) for index, entry in enumerate(entries)]
    counted = [pod for entry, pod in zip(entries, wanted, strict=True) for _ in range(entry.count)]
    question = Simulate(counted, snapshot.policies, _tenants({entry.namespace for entry in entries}, snapshot))
    found = msgspec.json.decode(await context.placement.ask(snapshot, question, caller.counted_as))
    landings = list(_rows(read, iter(found["pods"])))
    kept = await _kept(context, caller, snapshot)
    placed = sum(bool(row["node"]) for row in landings)
    body_ = {"placed": placed, "notPlaced": len(landings) - placed, **found, "pods": landings, "keptForGang": kept}
    return answer(request, {**body_, "staleSince": snapshot.stale_since})


async def _kept(context: Context, caller: Caller, snapshot: ClusterSnapshot) -> dict[str, Any] | None:
    """Return the room that is kept free for a gang; None where there is none."""
    if snapshot.held is None:
        return None
    sees = await visibility.namespaces(context.access, caller, {snapshot.held.key[0]})
    return kept_room.shown(snapshot.held, sees)


def _read(
    body: schemas.SimulateBodySchema, context: Context, snapshot: ClusterSnapshot
) -> list[PodsToPlace | UnplaceableEntry]:
    """Read the manifests. Raises AdminProblem that names every field that is wrong where no manifest can be read."""
    found: list[PodsToPlace | UnplaceableEntry] = []
    for index, entry in enumerate(body.pods):
        count = _count(entry)
        read = _pod(entry.pod, count or 1, context, snapshot)
        if count and isinstance(read, PodsToPlace):
            found.append(read)
            continue
        wrong = [] if isinstance(read, PodsToPlace) else [(f"pod.{field}", why) for field, why in read]
        wrong += [] if count else [("count", f"must be a whole number from 1 to {schemas.MAX_SIMULATED}")]
        problems = tuple(FieldError(f"pods[{index}].{field}".removesuffix("."), why) for field, why in wrong)
        namespace = _text(entry.pod, "namespace") or DEFAULT_NAMESPACE
        found.append(UnplaceableEntry(namespace, _text(entry.pod, "name") or "pod", problems, count or 1))
    errors = [problem for entry in found if isinstance(entry, UnplaceableEntry) for problem in entry.problems]
    if not any(isinstance(entry, PodsToPlace) for entry in found):
        raise AdminProblem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{errors[0].field}: {errors[0].detail}", errors)
    return found


def _count(entry: schemas.SimulatedEntrySchema) -> int | None:
    """Return how many pods an entry asks for; None where it says no such number."""
    count = entry.count
    is_number = isinstance(count, int) and not isinstance(count, bool)
    return count if is_number and 1 <= count <= schemas.MAX_SIMULATED else None


def _text(manifest: object, name: str) -> str:
    """Return a field of a manifest's metadata; empty where it is missing or no text."""
    metadata = manifest.get("metadata") if isinstance(manifest, Mapping) else None
    value = metadata.get(name) if isinstance(metadata, Mapping) else None
    return value[:MAX_NAME] if isinstance(value, str) else ""


def _rows(
    entries: Iterable[PodsToPlace | UnplaceableEntry], landings: Iterator[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each pod; `landings` has those of the pods that could be placed."""
    for entry in entries:
        for number in range(1, entry.count + 1):
            if isinstance(entry, PodsToPlace):
                yield {**_named(entry, number), **next(landings), "problems": []}
            else:
                yield documents.unplaceable(
                    entry.namespace, entry.name, number, [f"{why.field}: {why.detail}" for why in entry.problems]
                )


def _wanted(entry: PodsToPlace, index: int, snapshot: ClusterSnapshot) -> Wanted:
    gang = _gang(entry.pod)
    job = gang.name if gang else f"#{index}" if entry.count > 1 else ""
    labels = tuple(sorted(entry.pod.scheduling.labels.items()))
    identity = SimulatedIdentity(entry.namespace, labels, job)
    kept_out = snapshot.is_held_against(entry.pod)
    return Wanted(entry.request, entry.pod.host, gang, entry.rules, identity, is_kept_out=kept_out)


def _tenants(namespaces: Collection[Namespace], snapshot: ClusterSnapshot) -> dict[Namespace, list[CardTenant]]:
    """Return the pods of these namespaces, and the members of groups in space, that hold cards."""
    found: dict[Namespace, list[CardTenant]] = {}
    for pod in snapshot.pods.values():
        is_seen = pod.namespace in namespaces or (pod.parsed.request and pod.parsed.request.options.space)
        if is_seen and pod.node and not pod.is_terminal and isinstance(pod.assignment, Assignment):
            found.setdefault(pod.namespace, []).append(card_neighbours.tenant(pod, pod.assignment))
    return found


def _decoded(manifest: Any) -> PodJson | list[tuple[str, str]]:
    """Return a manifest with what is read of it, or the fields that are wrong."""
    if not isinstance(manifest, Mapping):
        return [("", "must be an object, a Pod")]
    if unquoted := [(problem.field, problem.why) for problem in asks_manifest.not_text(manifest)]:
        return unquoted
    try:
        found = pod_json.decode(msgspec.json.encode(manifest))
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError) as error:
        wrong = wrong_values.of_manifest(str(error))
        return [(wrong.field, wrong.detail)]
    return found


def _pod(manifest: Any, count: int, context: Context, snapshot: ClusterSnapshot) -> PodsToPlace | list[tuple[str, str]]:
    pod = _decoded(manifest)
    if isinstance(pod, list):
        return pod
    metadata = pod.get("metadata") or {}
    namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
    if not object_names.is_label(namespace):
        return [("metadata.namespace", "must be a DNS label: at most 63 of a-z, 0-9 and -, such as team-a")]
    name = metadata.get("name") or "pod"
    if not object_names.is_subdomain(name):
        return [("metadata.name", "must be a DNS subdomain: at most 253 of a-z, 0-9, - and ., such as train-1")]
    named = translate.translate(pod, lambda: _cards(snapshot), context.gpushare_unit_mib, snapshot.slice_mib)
    if named.asked is None and not named.problems:
        return [("spec.containers", other_names.why_none(pod))]
    problems = new_pods.problems(named, snapshot.slice_mib)
    if problems or named.asked is None:
        return [(problem.field, problem.why) for problem in problems]
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
