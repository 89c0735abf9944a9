"""Which pods and cards a caller may see: pods of the namespaces in which the caller may get pods."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from extender.admin.problems import AdminProblem, forbidden
from extender.admin.security.access import READ_CARDS, READ_PODS, Access, AccessRequest, Caller
from vgpu.domain.identifiers import Namespace

MAX_NAMESPACES: Final = 500  # reviewed for one request
AT_ONCE: Final = 16


def sees_all(_: Namespace) -> bool:
    """Return True: the caller may get the pods of every namespace."""
    return True


async def namespaces(access: Access, caller: Caller, asked: Iterable[Namespace]) -> Callable[[Namespace], bool]:
    """Return whether the caller may see the pods of each of these namespaces.

    Raises:
        AdminProblem: too many namespaces to review; the caller must name some.
    """
    if await access.may(caller, READ_PODS):
        return sees_all
    wanted = set(asked)
    if len(wanted) > MAX_NAMESPACES:
        detail = f"{len(wanted)} namespaces are too many to review; name some: ?namespace=NAME"
        raise AdminProblem(HTTPStatus.FORBIDDEN, detail)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def review(namespace: Namespace) -> bool:
        async with at_once:
            return await access.may(caller, replace(READ_PODS, namespace=namespace))

    allowed = await asyncio.gather(*map(review, wanted))
    seen = {namespace for namespace, is_allowed in zip(wanted, allowed, strict=True) if is_allowed}
    return seen.__contains__


async def asked_for(
    access: Access, caller: Caller, named: Iterable[str], existing: Iterable[Namespace]
) -> Callable[[Namespace], bool]:
    """Return whether the caller may see the pods of a namespace: of those `named` by a request, else of all `existing`.

    Raises:
        AdminProblem: 403 for a named namespace that the caller may not see.
    """
    wanted = set(map(Namespace, named))
    sees = await namespaces(access, caller, wanted or existing)
    hidden = sorted(namespace for namespace in wanted if not sees(namespace))
    if hidden:
        raise forbidden(caller.name, str(replace(READ_PODS, namespace=hidden[0])))
    return sees


async def require(access: Access, caller: Caller, action: AccessRequest) -> None:
    """Return where the caller has a right. Raises AdminProblem otherwise."""
    if not await access.may(caller, action):
        raise forbidden(caller.name, str(action))


async def require_cards(access: Access, caller: Caller) -> None:
    """Return where the caller may see nodes and cards. Raises AdminProblem otherwise."""
    await require(access, caller, READ_CARDS)
