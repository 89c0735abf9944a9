"""The status of the node's GPUNode: what NVML and the kubelet report of its cards, and the refused pods. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from vgpu.adapters.kubernetes import timestamps
from vgpu.adapters.nvml.records import Gpu
from vgpu.domain.cards import card_status, summary
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.share import CardState, Usage
from vgpu.domain.json_types import JsonObject
from vgpu.node.cards.inventory import InventoryState

REGISTERED: Final = "Registered"
CARDS_HEALTHY: Final = "CardsHealthy"
NO_CONFLICTS: Final = "NoConflicts"
SETTINGS_KNOWN: Final = "SettingsKnown"
ARBITER_RUNS: Final = "ArbiterRuns"
_MAX_MESSAGE: Final = 512


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition of the GPUNode; `is_true` is None if unknown. `reason` is one word, `message` is for people."""

    kind: str
    is_true: bool | None
    reason: str
    message: str


def status_of(
    state: InventoryState,
    slice_mib: int,
    version: str,
    conflicts: Iterable[str],
    refusals: Sequence[JsonObject] = (),
    usage: Sequence[JsonObject] = (),
    card_use: Sequence[JsonObject] = (),
    *,
    is_registered: bool = True,
) -> JsonObject:
    """Return the object's status without its conditions."""
    conflicts = list(conflicts)
    cards = [_with_state(gpu.card, state) for gpu in state.gpus]
    shown = zip(cards, (gpu.mig_enabled for gpu in state.gpus), strict=True)
    states = [CardState(card, slice_mib, Usage(cores=state.cores.get(card.uuid, 0))) for card in cards]
    return {
        "sliceMiB": slice_mib,
        "pluginVersion": version,
        "summary": summary.summary_of(states, is_ready=is_registered, conflicts=conflicts),
        "cards": [card_status.card_status(card, mig_enabled=mig_enabled) for card, mig_enabled in shown],
        "conflicts": conflicts,
        "refusals": list(refusals),
        "usage": list(usage),
        "cardUse": list(card_use),
    }


def conflicts_of(gpus: Iterable[Gpu], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the cards that another GPUNode lists too: a card is in one machine only, so one of the two is stale.

    Which one counts, the extender decides, because it sees the Leases of both (`vgpu.domain.cards.ownership`).
    """
    mine = {gpu.card.uuid for gpu in gpus}
    return sorted(
        f"{card['uuid']} is also on node {node['metadata']['name']}"
        for node in others
        for card in (node.get("status") or {}).get("cards") or ()
        if card.get("uuid") in mine
    )


def conditions_of(state: InventoryState, conflicts: Sequence[str], *, is_registered: bool) -> tuple[NodeCondition, ...]:
    """Return the node's conditions."""
    faults = "; ".join(
        f"card {gpu.card.index}: {why}" for gpu in state.gpus if (why := state.faults.get(gpu.card.uuid))
    )
    return (
        NodeCondition(
            REGISTERED,
            is_registered,
            "KubeletConnected" if is_registered else "KubeletNotConnected",
            "the kubelet takes the node's devices"
            if is_registered
            else "the kubelet has no stream of the node's devices",
        ),
        NodeCondition(CARDS_HEALTHY, not faults, "Faults" if faults else "NoFault", faults or "every card is healthy"),
        NodeCondition(
            NO_CONFLICTS,
            not conflicts,
            "DuplicateUUID" if conflicts else "NoDuplicate",
            "; ".join(conflicts) or "no other GPUNode reports a card of this node",
        ),
        NodeCondition(
            SETTINGS_KNOWN,
            not state.unknown,
            "UnknownCard" if state.unknown else "NoUnknownCard",
            f"spec.cards names {', '.join(state.unknown)}, which no card of this node has: correct the UUID"
            if state.unknown
            else "spec.cards names cards of this node only",
        ),
    )


def arbiter_condition(is_running: bool | None) -> tuple[NodeCondition, ...]:
    """Return the condition about the node's arbiter; none where the node has none (`is_running` is None)."""
    if is_running is None:
        return ()
    message = "containers take turns" if is_running else "containers keep to their limits, without turns"
    return (NodeCondition(ARBITER_RUNS, is_running, "Running" if is_running else "ArbiterDown", message),)


def stamped(
    conditions: Iterable[NodeCondition], before: Iterable[Mapping[str, Any]], now: datetime
) -> list[JsonObject]:
    """Return conditions as the API has them; one whose status is the same as before keeps its transition time."""
    known = {condition.get("type"): condition for condition in before}
    return [_stamped(condition, known.get(condition.kind) or {}, now) for condition in conditions]


def with_times(cards: Iterable[JsonObject], before: JsonObject, now: datetime) -> list[JsonObject]:
    """Return the cards, those that are not healthy with the time since when: that of the status before, or `now`."""
    since = card_status.unhealthy_since({"status": before})
    return [
        card if card["healthy"] else card | {"unhealthySince": since.get(card["uuid"]) or timestamps.seconds(now)}
        for card in cards
    ]


def _stamped(condition: NodeCondition, before: Mapping[str, Any], now: datetime) -> JsonObject:
    status = "Unknown" if condition.is_true is None else str(condition.is_true)
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": condition.kind,
        "status": status,
        "reason": condition.reason,
        "message": condition.message[:_MAX_MESSAGE],
        "lastTransitionTime": since or timestamps.seconds(now),
    }


def _with_state(card: Card, state: InventoryState) -> Card:
    reason = state.faults.get(card.uuid, "")
    return replace(
        card,
        healthy=not reason,
        reason=reason,
        held_slices=state.held.slices_of(card.uuid),
        held_whole=card.uuid in state.held.cards,
        cordoned=card.uuid in state.cordoned,
        cordoned_since=state.cordoned.get(card.uuid, ""),
    )
