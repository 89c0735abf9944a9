"""Which events lie between two versions of a GPUNode."""

from collections.abc import Iterator

from extender.history.recording.events import CardChange, CardEvent
from extender.state.objects import GpuNode
from vgpu.domain.cards.device import Card


def changes(before: GpuNode | None, after: GpuNode, at_ms: int) -> Iterator[CardEvent]:
    """Yield what changed about each card; of a GPUNode that is new, every card that is not as it should be."""
    known = {card.uuid: card for card in before.node.cards} if before else {}
    listed = {card.uuid: card for card in after.node.cards}
    for uuid, card in listed.items():
        for change, detail in _card(known.get(uuid), card, is_new_node=before is None):
            yield _event(after, card, at_ms, change, detail)
    for uuid in known.keys() - listed.keys():
        yield _event(after, known[uuid], at_ms, CardChange.REMOVED, "")


def removed(gone: GpuNode, at_ms: int) -> Iterator[CardEvent]:
    """Yield the removal of each card of a GPUNode that was deleted."""
    for card in gone.node.cards:
        yield _event(gone, card, at_ms, CardChange.REMOVED, "the GPUNode was deleted")


def _card(before: Card | None, after: Card, *, is_new_node: bool) -> Iterator[tuple[CardChange, str]]:
    if before is None and not is_new_node:
        yield CardChange.ADDED, ""
    if after.healthy != (before.healthy if before else True):
        yield (CardChange.HEALTHY, "") if after.healthy else (CardChange.UNHEALTHY, after.reason)
    if after.cordoned != (before.cordoned if before else False):
        yield (CardChange.CORDONED if after.cordoned else CardChange.UNCORDONED), ""
    if before is not None and after.mode != before.mode:
        yield CardChange.MODE, after.mode


def _event(node: GpuNode, card: Card, at_ms: int, change: CardChange, detail: str) -> CardEvent:
    return CardEvent(node.node.name, card.uuid, card.index, card.model, at_ms, change, detail, node.version)
