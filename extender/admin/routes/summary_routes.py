"""`/summary`: the cluster in a few numbers, and what an administrator should look at."""

from collections import Counter
from collections.abc import Callable, Hashable
from itertools import chain
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

import vgpu
from extender.admin.answers import findings, schemas
from extender.admin.answers.json_response import answer_bytes
from extender.admin.answers.queries import NoQuery
from extender.admin.answers.summary_parts import SUMMED, ClusterParts
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.routes.context import Called, Using
from extender.admin.security import visibility
from vgpu.domain.identifiers import Namespace

router = APIRouter(tags=["inventory"])

Sees = Callable[[Namespace], bool]


@router.get("/summary", response_model=schemas.SummarySchema)
async def summarize(
    request: Request, context: Using, caller: Called, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Show totals over all nodes, and numbers of the pods that the caller may see. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    sees = await visibility.namespaces(context.access, caller, snapshot.namespaces)
    parts = context.parts.of(snapshot)
    body = context.summaries.get(snapshot.number, _seen(snapshot, sees), lambda: _summary(snapshot, sees, parts))
    return answer_bytes(request, body)


def _seen(snapshot: ClusterSnapshot, sees: Sees) -> Hashable:
    """Return what a summary depends on beside the snapshot: the namespaces that the caller may see."""
    return "all" if sees is visibility.sees_all else frozenset(filter(sees, snapshot.namespaces))


def _summary(snapshot: ClusterSnapshot, sees: Sees, parts: ClusterParts) -> bytes:
    nodes, pods = [part.figures for part in parts.nodes], Counter[str]()
    for (namespace, status), count in parts.counted.items():
        pods[status] += count if sees(namespace) else 0
    of_nodes = chain((part.of_node for part in parts.nodes), (part.of_cards for part in parts.nodes))
    body: dict[str, Any] = {
        "version": vgpu.__version__,
        "nodes": len(nodes),
        "usableNodes": sum(node["usable"] for node in nodes),
        **{name: sum(node[name] for node in nodes) for name in SUMMED},
        "pods": {name: pods[name] for name in schemas.SummaryPodsSchema.model_fields},
        "scheduler": snapshot.why_not_bound,
        "findings": findings.of(snapshot, sees, chain.from_iterable(of_nodes), parts.unsound),
        "staleSince": snapshot.stale_since,
    }
    return msgspec.json.encode(body)
