"""`/nodes` and `/gpus`: what the cluster has, and what is free of it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from extender.admin.answers import rows, wrong_values
from extender.admin.answers.json_response import answer
from extender.admin.answers.listed import gpus, nodes, pages
from extender.admin.answers.listed.filters import NAME
from extender.admin.answers.queries import GpuQuery, NodeQuery, NoQuery
from extender.admin.problems import not_found
from extender.admin.routes.context import Called, Using
from extender.admin.security import visibility
from vgpu.domain.identifiers import NO_NODE, CardUuid, NodeName

router = APIRouter(tags=["inventory"])

NodeInPath = Annotated[NodeName, Path(pattern=NAME, max_length=253, description="name of the node")]
Uuid = Annotated[CardUuid, Path(pattern=wrong_values.UUID, max_length=80, description="NVML's UUID of the card")]


@router.get("/nodes", response_model=pages.NodeListSchema)
async def list_nodes(
    request: Request, context: Using, caller: Called, query: Annotated[NodeQuery, Query()]
) -> Response:
    """List nodes with GPUs. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    kind = nodes.kind(snapshot)
    asked, whose = query.list_request(), caller.counted_as
    page = await context.lists.page("nodes", snapshot, snapshot.views.values(), asked, kind, caller=whose)
    return answer(request, page.as_json(snapshot.stale_since))


@router.get("/nodes/{name}", response_model=nodes.NodeSchema)
async def get_node(
    request: Request, context: Using, caller: Called, name: NodeInPath, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Show one node. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    if name not in snapshot.views:
        raise not_found(f"node {name}")
    return answer(request, rows.with_staleness(nodes.row(snapshot.views[name], snapshot), snapshot))


@router.get("/gpus", response_model=pages.GpuListSchema)
async def list_gpus(request: Request, context: Using, caller: Called, query: Annotated[GpuQuery, Query()]) -> Response:
    """List cards, with the containers on them whose pods the caller may see. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    sees = await visibility.namespaces(context.access, caller, snapshot.namespaces)
    kind = gpus.kind(snapshot, sees)
    asked, whose = query.list_request(), caller.counted_as
    page = await context.lists.page("gpus", snapshot, gpus.of(snapshot), asked, kind, caller=whose)
    return answer(request, page.as_json(snapshot.stale_since))


@router.get("/gpus/{uuid}", response_model=gpus.GpuSchema)
async def get_gpu(
    request: Request, context: Using, caller: Called, uuid: Uuid, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Show one card. Needs the right to list gpunodes."""
    await visibility.require_cards(context.access, caller)
    snapshot = await context.snapshot()
    node = snapshot.node_of_card.get(uuid, NO_NODE)
    sees = await visibility.namespaces(context.access, caller, {pod.namespace for pod in snapshot.holders(node, uuid)})
    view = snapshot.views.get(node)
    if view is None:
        raise not_found(f"card {uuid}")
    state = next(card for card in view.state.cards if card.card.uuid == uuid)
    return answer(request, rows.with_staleness(gpus.kind(snapshot, sees).row((view, state), ()), snapshot))
