"""`POST /gpus/{uuid}/cordon` and `/uncordon`: no new containers on a card, or new containers again."""

from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from extender.admin.answers.json_response import answer
from extender.admin.answers.listed import gpus
from extender.admin.answers.queries import NoQuery
from extender.admin.problems import AdminProblem, not_found
from extender.admin.routes.context import Called, Context, Using
from extender.admin.routes.history_route import RecordedRoute
from extender.admin.routes.inventory_routes import Uuid
from extender.admin.security import visibility
from extender.admin.security.access import AccessRequest, Caller
from vgpu.domain import names
from vgpu.domain.identifiers import NO_NODE, CardUuid

router = APIRouter(tags=["administration"], route_class=RecordedRoute)

PATCH_NODE: Final = AccessRequest("patch", "gpunodes", names.DOMAIN)


@router.post("/gpus/{uuid}/cordon", response_model=gpus.GpuSchema)
async def cordon(
    request: Request, context: Using, caller: Called, uuid: Uuid, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Place no new containers on a card; running containers stay. Needs the right to patch the node's gpunode."""
    return answer(request, await _set(context, caller, uuid, cordoned=True))


@router.post("/gpus/{uuid}/uncordon", response_model=gpus.GpuSchema)
async def uncordon(
    request: Request, context: Using, caller: Called, uuid: Uuid, query: Annotated[NoQuery, Query()]  # noqa: ARG001
) -> Response:  # fmt: skip
    """Place new containers on a card again. Needs the right to patch the node's gpunode."""
    return answer(request, await _set(context, caller, uuid, cordoned=False))


async def _set(context: Context, caller: Caller, uuid: CardUuid, *, cordoned: bool) -> dict[str, Any]:
    """Change the card's setting and return the card. The action is recorded with its caller, also if it is refused."""
    action = "cordon" if cordoned else "uncordon"
    snapshot = await context.snapshot()
    node = snapshot.node_of_card.get(uuid, NO_NODE)
    try:
        await visibility.require(context.access, caller, replace(PATCH_NODE, name=node))
        if not node:
            raise not_found(f"card {uuid}")
        changed = await context.cards.cordon(node, uuid, cordoned=cordoned)
    except AdminProblem as problem:
        context.audit.record(caller, action, uuid, node, problem.detail)
        raise
    context.audit.record(caller, action, uuid, node, "done" if changed else "unchanged")
    view = snapshot.views[node]
    state = next(card for card in view.state.cards if card.card.uuid == uuid)
    now = replace(state, card=replace(state.card, cordoned=cordoned))
    return {**gpus.row(view, now, snapshot), "pods": [], "spaceGroups": [], "namespaces": []}
