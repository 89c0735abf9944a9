"""`/groups`: the groups in space on cards."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from extender.admin.answers import label_selectors
from extender.admin.answers.json_response import answer
from extender.admin.answers.listed import pages, placed_groups
from extender.admin.answers.listed.placed_groups import PlacedGroup
from extender.admin.answers.queries import GroupQuery
from extender.admin.routes.context import Called, Using
from extender.admin.security import visibility

router = APIRouter(tags=["pods"])


@router.get("/groups", response_model=pages.GroupListSchema)
async def list_groups(
    request: Request, context: Using, caller: Called, query: Annotated[GroupQuery, Query()]
) -> Response:
    """List groups in space, once for each card, that have a pod of a namespace in which the caller may get pods.

    Their sums are of all members.
    """
    snapshot = await context.snapshot()
    sees = await visibility.asked_for(context.access, caller, query.namespace, snapshot.namespaces)
    matches, named = label_selectors.parse(query.selector), frozenset(query.namespace)

    def sees_group(placed: PlacedGroup) -> bool:
        """Whether a pod that the caller may see is of a namespace and has labels that were asked for."""
        return any(
            sees(pod.namespace) and (not named or pod.namespace in named) and matches(pod.scheduling.labels)
            for pod in placed.pods
        )

    asked, kind = query.list_request(), placed_groups.kind(snapshot, sees)
    found = placed_groups.of(snapshot)
    page = await context.lists.page("groups", snapshot, found, asked, kind, caller=caller.counted_as, sees=sees_group)
    return answer(request, page.as_json(snapshot.stale_since))
