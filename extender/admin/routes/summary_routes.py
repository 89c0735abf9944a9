"""`/summary`: the cluster in a few numbers, and what an administrator should look at."""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

import vgpu
from extender.admin.answers import findings, rows, schemas
from extender.admin.answers.json_response import answer_bytes
from extender.admin.answers.listed import nodes as node_rows
from extender.admin.answers.queries import NoQuery
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.routes.context import Called, Using
from extender.admin.security import visibility
from vgpu.domain.identifiers import Namespace

router = APIRouter(tags=["inventory"])

SUMMED = ("memoryMiB", "allocatedMiB", "freeMiB", "allocatedCores", "freeCores", "gpus", "healthyGpus", "cordonedGpus")
Sees = Callable[[Namespace], bool]


@router.get("/summary", response_model=schemas.SummarySchema)
async def summarize(
    request: Request, context: Using, caller: Called, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Show totals over all nodes, and numbers of the pods that the caller may see. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    sees = await visibility.namespaces(context.access, caller, snapshot.namespaces)
    body = context.summaries.get(snapshot.number, _seen(snapshot, sees), lambda: _summary(snapshot, sees))
    return answer_bytes(request, body)


def _seen(snapshot: ClusterSnapshot, sees: Sees) -> Hashable:
    """Return what a summary depends on beside the snapshot: the namespaces that the caller may see."""
    return "all" if sees is visibility.sees_all else frozenset(filter(sees, snapshot.namespaces))


def _summary(snapshot: ClusterSnapshot, sees: Sees) -> bytes:
    nodes = [node_rows.row(view, snapshot, (*SUMMED, "usable")) for view in snapshot.views.values()]
    asking = (pod for pod in snapshot.pods.values() if pod.asks_for_cards and sees(pod.namespace))
    pods = Counter(map(rows.status, asking))
    body: dict[str, Any] = {
        "version": vgpu.__version__,
        "nodes": len(nodes),
        "usableNodes": sum(node["usable"] for node in nodes),
        **{name: sum(node[name] for node in nodes) for name in SUMMED},
        "pods": {name: pods[name] for name in schemas.SummaryPodsSchema.model_fields},
        "scheduler": snapshot.why_not_bound,
        "findings": findings.of(snapshot, sees),
        "staleSince": snapshot.stale_since,
    }
    return msgspec.json.encode(body)
