"""Which cards belong to one job: its ranks wait for each other, so all of them are in use while one is. Pure."""

from collections.abc import Collection, Sequence

from vgpu.domain.identifiers import CardUuid


def linked_with(gpu: CardUuid, joined: Sequence[Collection[CardUuid]]) -> frozenset[CardUuid]:
    """Return the other cards of a card's job. `joined`: sets of cards that a process or a job has joined."""
    found, before = {gpu}, 0
    while len(found) > before:
        before = len(found)
        found.update(*(cards for cards in joined if not found.isdisjoint(cards)))
    return frozenset(found - {gpu})
