"""Settings of cards, written to the GPUNode's spec, where kubectl writes them too. Concurrent writers are detected."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from extender.admin.problems import AdminProblem
from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.domain.json_types import JsonObject

ATTEMPTS: Final = 5
MAX_CARDS: Final = 64  # of the custom resource
TIMEOUT_S: Final = 5.0


class GpuNodeClient(Protocol):
    """The part of the API client that changes GPUNodes. Every method raises KubernetesError."""

    async def get(self, path: str, params: Mapping[str, str] | None = None, *, timeout: float) -> bytes:
        """GET an object."""

    async def patch(self, path: str, body: Any, *, timeout: float) -> bytes:
        """Apply a merge patch."""


class CardSettings:
    """Changes cards of GPUNodes."""

    def __init__(self, client: GpuNodeClient) -> None:
        self._client = client

    async def cordon(self, node: NodeName, uuid: CardUuid, *, cordoned: bool) -> bool:
        """Cordon or uncordon a card; return whether that changed anything.

        The whole list is written with the resourceVersion that was read: where another client has changed the object
        meanwhile, it is read again. Raises AdminProblem.
        """
        path = f"{names.GPUNODES_PATH}/{node}"
        for _ in range(ATTEMPTS):
            try:
                seen = msgspec.json.decode(await self._client.get(path, timeout=TIMEOUT_S))
                cards = with_cordon((seen.get("spec") or {}).get("cards") or [], uuid, cordoned=cordoned)
                if cards is None:
                    return False
                version = {"resourceVersion": seen["metadata"]["resourceVersion"]}
                await self._client.patch(path, {"metadata": version, "spec": {"cards": cards}}, timeout=TIMEOUT_S)
            except KubernetesError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise _problem(node, error) from error
            else:
                return True
        raise AdminProblem(HTTPStatus.CONFLICT, f"GPUNode {node} changes all the time; try again")


def with_cordon(cards: list[JsonObject], uuid: CardUuid, *, cordoned: bool) -> list[JsonObject] | None:
    """Return the list with one card's cordon set; None where it is set already."""
    known = next((card for card in cards if card.get("uuid") == uuid), None)
    if bool((known or {}).get("cordoned")) == cordoned:
        return None
    changed = {**(known or {"uuid": uuid}), "cordoned": cordoned}
    return [*(card for card in cards if card is not known), changed]


def _problem(node: NodeName, error: KubernetesError) -> AdminProblem:
    if error.status == HTTPStatus.NOT_FOUND:
        return AdminProblem(HTTPStatus.NOT_FOUND, f"GPUNode {node} does not exist any more")
    detail = f"the API server did not change GPUNode {node}: {error.message or error.reason}"
    return AdminProblem(HTTPStatus.BAD_GATEWAY, detail)
