"""Whose card is this, where several GPUNodes report one UUID? The one rule, for the extender and for simulations.

A card is in one machine, so all reports but one are old: of a node whose card was moved, or that was renamed. The node
counts whose device plugin lives, because a plugin that does not renew its Lease says nothing about the present.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from vgpu.domain.cards.device import Card
from vgpu.domain.identifiers import NO_NODE, NodeName

DUPLICATE: Final = "DuplicateUUID"
OLDEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CardClaim:
    """A GPUNode's report of a card.

    Attributes:
        node: name of the GPUNode.
        is_alive: whether the node's device plugin renews its Lease in time.
        renewed: when the Lease was renewed last, in seconds; it decides between plugins that are all away.
        is_healthy: whether the plugin hands the card out: one that runs on reports a card that was taken out as faulty.
        created: when the GPUNode was created.
    """

    node: NodeName
    is_alive: bool
    renewed: float
    is_healthy: bool
    created: datetime


def owner(claims: Iterable[CardClaim]) -> NodeName:
    """Return the node on which a card counts; no node where no GPUNode reports the card.

    A plugin that lives comes before one that does not, one that was heard of later before an earlier one. Of plugins
    that all live, one that hands the card out comes first, then the newest GPUNode, then the last by name.
    """
    return max(claims, key=_rank, default=_NO_CLAIM).node


def age(created: str) -> datetime:
    """Read a GPUNode's creation time; a time that cannot be read is the oldest."""
    try:
        found = datetime.fromisoformat(created)
    except ValueError:
        return OLDEST
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def on_node(card: Card, node: NodeName, owner: NodeName) -> Card:
    """Return a card as it counts on a node: closed where it counts on another one."""
    return card if owner == node else replace(card, healthy=False, reason=DUPLICATE, counts_on=owner)


def words(owner: NodeName) -> str:
    """Say why a card of another node's GPUNode is closed there: it counts on its owner."""
    return f"the card counts on node {owner}, whose device plugin reports it too"


def advice(node: NodeName, owner: NodeName) -> str:
    """Say what an administrator can do about a card that a node's GPUNode reports and that counts on its owner."""
    moved = f"if the card was moved there, restart the device plugin of {node}, or delete its GPUNode"
    return f"{words(owner)}; {moved}"


def _rank(claim: CardClaim) -> tuple[bool, float, bool, datetime, NodeName]:
    heard_of = 0.0 if claim.is_alive else claim.renewed  # of plugins that live, the last renewal says nothing
    return claim.is_alive, heard_of, claim.is_healthy, claim.created, claim.node


_NO_CLAIM: Final = CardClaim(NO_NODE, is_alive=False, renewed=0.0, is_healthy=False, created=OLDEST)
