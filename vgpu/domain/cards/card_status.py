"""The cards of a GPUNode: `status.cards` as a device plugin writes it, and the node as it is read."""

from typing import Any, Final

from vgpu.domain.cards.device import Card, CardMode, Node
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import Json

_MAX_TIME: Final = 35


def card_status(card: Card, *, mig_enabled: bool) -> dict[str, Any]:
    """Return the JSON of a card; `mig_enabled` says whether NVML reports the card as divided by MIG."""
    cordon = {"cordonedSince": card.cordoned_since} if card.cordoned_since else {}
    return cordon | {
        "uuid": card.uuid,
        "index": card.index,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "numaNode": card.numa_node,
        "nvlinkPeers": list(card.nvlink_peers),
        "healthy": card.healthy,
        "reason": card.reason,
        "heldSlices": card.held_slices,
        "heldWhole": card.held_whole,
        "migEnabled": mig_enabled,
        "unified": card.unified,
        "exclusiveProcess": card.exclusive_process,
        "servesSpace": card.serves_space,
    }


def node(obj: Json) -> Node:
    """Read a GPUNode: the cards that the device plugin reports, with the administrator's settings from `spec`.

    Raises ValueError where cards are reported without the size of a slice: what is taken of them cannot be counted.
    """
    metadata, status = obj["metadata"], obj.get("status") or {}
    wanted = {entry.get("uuid"): entry for entry in (obj.get("spec") or {}).get("cards") or ()}
    cards = tuple(_card(entry, wanted.get(entry["uuid"]) or {}) for entry in status.get("cards") or ())
    slice_mib = status.get("sliceMiB") or 0
    if cards and not (isinstance(slice_mib, int) and slice_mib >= 1):
        raise ValueError(f"status.sliceMiB of GPUNode {metadata['name']}: must be 1 at least")
    return Node(metadata["name"], slice_mib, cards, status.get("pluginVersion") or "")


def cordons(obj: Json) -> dict[CardUuid, str]:
    """Return the cards that the spec of a GPUNode cordons, each with the time since when; empty where it is new."""
    cards: list[Json] = (obj.get("spec") or {}).get("cards") or []
    since = cordoned_since(obj)
    named = (CardUuid(str(card.get("uuid"))) for card in cards if card.get("cordoned") is True)
    return {uuid: since.get(uuid, "") for uuid in named}


def cordoned_since(obj: Json) -> dict[CardUuid, str]:
    """Return since when each card is cordoned, by the status of a GPUNode; empty where it does not say."""
    return _times(obj, "cordonedSince")


def unhealthy_since(obj: Json) -> dict[CardUuid, str]:
    """Return since when each card is not healthy, by the status of a GPUNode; empty where it does not say."""
    return _times(obj, "unhealthySince")


def _times(obj: Json, field: str) -> dict[CardUuid, str]:
    listed = (obj.get("status") or {}).get("cards") or ()
    return {CardUuid(str(entry.get("uuid"))): _time(entry.get(field)) for entry in listed}


def _card(seen: Json, wanted: Json) -> Card:
    mode = wanted.get("mode") or CardMode.SHARED
    if mode == CardMode.SHARED and seen.get("exclusiveProcess"):
        mode = CardMode.EXCLUSIVE
    return Card(
        uuid=seen["uuid"],
        index=seen.get("index", 0),
        model=seen.get("model", ""),
        memory_mib=seen.get("memoryMiB", 0),
        healthy=bool(seen.get("healthy", True)),
        reason=seen.get("reason") or "",
        unhealthy_since="" if seen.get("healthy", True) else _time(seen.get("unhealthySince")),
        numa_node=seen.get("numaNode", -1),
        nvlink_peers=tuple(seen.get("nvlinkPeers") or ()),
        cordoned=bool(wanted.get("cordoned")),
        cordoned_since=_time(seen.get("cordonedSince")) if wanted.get("cordoned") else "",
        mode=CardMode.of(mode),
        held_slices=seen.get("heldSlices") or 0,
        held_whole=bool(seen.get("heldWhole")),
        unified=bool(seen.get("unified")),
        exclusive_process=bool(seen.get("exclusiveProcess")),
        serves_space=bool(seen.get("servesSpace")),
    )


def _time(text: Any) -> str:
    return text[:_MAX_TIME] if isinstance(text, str) else ""
