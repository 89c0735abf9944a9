"""`/pods`, `/pending` and the explanation of one pod."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from extender.admin.answers import label_selectors, paging, pending_explanations, rows, schemas
from extender.admin.answers.json_response import answer
from extender.admin.answers.listed import columns, pages, pending, pods
from extender.admin.answers.listed.filters import NAME
from extender.admin.answers.listed.pending import ListedWait
from extender.admin.answers.queries import ExplainQuery, NoQuery, PendingQuery, PodQuery
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from extender.admin.routes.context import Called, Context, Using
from extender.admin.security import visibility
from extender.admin.security.access import READ_PODS, Caller
from extender.admin.worker.questions import Explain, Reasons
from extender.state import gang_members
from extender.state.objects import WatchedPod
from vgpu.domain import names
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import Namespace, NodeName
from vgpu.placement.simulation.simulate import Wanted

router = APIRouter(tags=["pods"])

NamespaceInPath = Annotated[Namespace, Path(pattern=NAME, max_length=253, description="namespace of the pod")]
PodName = Annotated[str, Path(pattern=NAME, max_length=253, description="name of the pod")]
Row = dict[str, Any]


@router.get("/pods", response_model=pages.PodListSchema)
async def list_pods(request: Request, context: Using, caller: Called, query: Annotated[PodQuery, Query()]) -> Response:
    """List pods that ask for GPUs, of the namespaces in which the caller may get pods."""
    snapshot = await context.snapshot()
    sees = await visibility.asked_for(context.access, caller, query.wanted()["namespace"], snapshot.namespaces)
    matches = label_selectors.parse(query.selector)
    page = await context.lists.page(
        "pods",
        snapshot,
        snapshot.pods.values(),
        query.list_request(),
        pods.kind(snapshot, lambda pod: context.lists.pod_row(pod, snapshot)),
        caller=caller.counted_as,
        keeps=lambda pod: pod.asks_for_cards and matches(pod.scheduling.labels),
        sees=lambda pod: sees(pod.namespace),
    )
    return answer(request, page.as_json(snapshot.stale_since))


@router.get("/pods/{namespace}/{name}", response_model=pods.PodSchema)
async def get_pod(
    request: Request, context: Using, caller: Called, namespace: NamespaceInPath, name: PodName,
    query: Annotated[NoQuery, Query()],  # noqa: ARG001 - refuses unknown parameters
) -> Response:  # fmt: skip
    """Show one pod."""
    snapshot, pod = await _pod(context, caller, namespace, name)
    return answer(request, rows.with_staleness(pods.row(pod, snapshot), snapshot))


@router.get("/pending", response_model=pages.PendingListSchema)
async def list_pending(
    request: Request, context: Using, caller: Called, query: Annotated[PendingQuery, Query()]
) -> Response:
    """List waiting pods, each with the reasons of the nodes and the node that lacks the least."""
    snapshot = await context.snapshot()
    sees = await visibility.asked_for(context.access, caller, query.wanted()["namespace"], snapshot.namespaces)
    matches = label_selectors.parse(query.selector)
    wanted = query.list_request()
    paging.check_fields(wanted.fields, pending.FIELDS)
    page = await context.lists.page(
        "pending",
        snapshot,
        snapshot.pods.values(),
        replace(wanted, fields=()),
        pods.kind(snapshot),
        caller=caller.counted_as,
        keeps=lambda pod: rows.is_pending(pod) and matches(pod.scheduling.labels),
        sees=lambda pod: sees(pod.namespace),
    )
    listed = [row for row in page.items if isinstance(row, dict) and row["uid"] in snapshot.pods]
    waiting = [snapshot.pods[row["uid"]] for row in listed]
    found = await _reasons(context, caller, snapshot, waiting, sees)
    waits = [ListedWait(rows.waiting(pod, snapshot), found[pod.uid]) for pod in waiting]
    items = [{**row, **columns.row(pending.OF_WAIT, wait)} for row, wait in zip(listed, waits, strict=True)]
    chosen = [paging.chosen(row, wanted.fields) for row in items]
    return answer(request, paging.RowPage(chosen, page.next_cursor).as_json(snapshot.stale_since))


@router.get("/pods/{namespace}/{name}/explain", response_model=schemas.ExplanationSchema)
async def explain_pod(
    request: Request, context: Using, caller: Called, namespace: NamespaceInPath, name: PodName,
    query: Annotated[ExplainQuery, Query()],
) -> Response:  # fmt: skip
    """Explain why a pod waits: every node's and card's reason, the nearest fit, and what would help."""
    snapshot, pod = await _pod(context, caller, namespace, name)
    gang = pending_explanations.gang_of(pod, await context.why_gangs_wait(gang_members.keys_of([pod])))
    known = pending_explanations.cause(pod, gang, snapshot)
    (request_,) = await context.requests([pod])
    waits = rows.waiting(pod, snapshot) if rows.is_pending(pod) else {"waitsSince": "", "lastDecision": None}
    if known is not None or request_ is None:
        shown = {**_nothing(), **(known or {}), **waits, "pod": pods.row(pod, snapshot)}
        return answer(request, {**shown, "staleSince": snapshot.stale_since})
    (wanted,) = await _wanted(context, snapshot, [(pod, request_)])
    elsewhere = pending_explanations.elsewhere(pod, gang)
    question = Explain(wanted, snapshot.policies, query.nodes, elsewhere)
    found = msgspec.json.decode(await context.placement.ask(snapshot, question, caller.counted_as))
    sees = await visibility.namespaces(context.access, caller, _tenant_namespaces([found], snapshot))
    found["nearest"] = pending_explanations.with_helping_pods(found["nearest"], snapshot, sees)
    found["advice"] += pending_explanations.advice_to_wait(found["reasons"], snapshot)
    found["message"] = pending_explanations.why_waiting(
        pod, request_, found["reasons"], found["nearest"], fits=found["fits"], gang=gang
    )
    shown = {**found, **waits, "pod": pods.row(pod, snapshot)}
    return answer(request, {**shown, "staleSince": snapshot.stale_since})


async def _pod(
    context: Context, caller: Caller, namespace: NamespaceInPath, name: str
) -> tuple[ClusterSnapshot, WatchedPod]:
    """Return a pod that the caller may see. Raises AdminProblem: 403 without the right, so that no name leaks."""
    await visibility.require(context.access, caller, replace(READ_PODS, namespace=namespace))
    snapshot = await context.snapshot()
    pod = snapshot.by_name.get((namespace, name))
    if pod is None or not pod.asks_for_cards:
        raise _no_such_pod(namespace, name)
    return snapshot, pod


def _no_such_pod(namespace: str, name: str) -> AdminProblem:
    """Return the problem of a pod that is none of ours; pods that ask for no GPU of vgpushare are not watched."""
    why = (
        f"pod {namespace}/{name} does not exist, or asks for no GPU of vgpushare: {names.GPU_MEM} asks for a share, "
        f"{names.GPU} for whole cards, and nvidia.com/gpu alone is for NVIDIA's device plugin"
    )
    return AdminProblem(HTTPStatus.NOT_FOUND, why)


async def _reasons(
    context: Context,
    caller: Caller,
    snapshot: ClusterSnapshot,
    waiting: list[WatchedPod],
    sees: Callable[[Namespace], bool],
) -> dict[str, Row]:
    found: dict[str, Row] = {}
    asked = []
    gangs = await context.why_gangs_wait(gang_members.keys_of(waiting))
    for pod in waiting:
        gang = pending_explanations.gang_of(pod, gangs)
        known = pending_explanations.cause(pod, gang, snapshot)
        if known is not None:
            found[pod.uid] = {key: known[key] for key in ("message", "reasons", "nearest")}
        elif pod.parsed.request is not None:
            asked.append((pod, pod.parsed.request))
    if asked:
        beside = await context.requests([pod for pod, _ in asked])
        judged = [(pod, now or request) for (pod, request), now in zip(asked, beside, strict=True)]
        wanted = await _wanted(context, snapshot, judged)
        held_back = [pending_explanations.elsewhere(pod, pending_explanations.gang_of(pod, gangs)) for pod, _ in asked]
        question = Reasons(wanted, snapshot.policies, [why.reason if why else None for why in held_back])
        answers = msgspec.json.decode(await context.placement.ask(snapshot, question, caller.counted_as))
        for (pod, request), landing in zip(asked, answers, strict=True):
            near = pending_explanations.with_helping_pods(landing["nearest"], snapshot, sees)
            message = pending_explanations.why_waiting(
                pod,
                request,
                landing["reasons"],
                near,
                fits=bool(landing["node"]),
                gang=pending_explanations.gang_of(pod, gangs),
            )
            found[pod.uid] = {"message": message, "reasons": landing["reasons"], "nearest": near}
    return found


async def _wanted(
    context: Context, snapshot: ClusterSnapshot, pods: Iterable[tuple[WatchedPod, PodRequest]]
) -> list[Wanted]:
    """Return pods as they are judged, each with what it asks for now; the room that others get is not theirs.

    Which cards are reserved for nominated pods is asked once for equal pods.
    """
    found, known = [], dict[Hashable, tuple[tuple[NodeName, Reason], ...]]()
    for pod, request in pods:
        kind = request, pod.scheduling.priority, gang_members.key_of(pod), pod.scheduling.nominated_node and pod.uid
        if snapshot.has_nominations and kind not in known:
            reserved = await context.reserved(pod)
            known[kind] = tuple((node, refusal.reason) for node, refusal in sorted(reserved.items()))
        kept_out, others = snapshot.is_held_against(pod), known.get(kind, ())
        found.append(Wanted(request, pod.host, rules=pod.rules, is_kept_out=kept_out, reserved=others))
    return found


def _nothing() -> Row:
    return {
        "fits": False, "nodesThatFit": 0, "reasons": [], "nearest": None, "advice": [], "nodes": [], "nodesLeftOut": 0,
    }  # fmt: skip


def _tenant_namespaces(found: Iterable[Row], snapshot: ClusterSnapshot) -> set[Namespace]:
    nearest = [near for landing in found if (near := landing["nearest"])]
    cards = [(near["node"], card["uuid"]) for near in nearest for card in near["gpus"]]
    return {pod.namespace for card in cards for pod in snapshot.holders(*card)}
