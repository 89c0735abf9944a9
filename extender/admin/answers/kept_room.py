"""The room that is kept free for a gang, in answers. Only callers who may see the gang's pods read its name. Pure."""

from collections.abc import Callable
from typing import Any, Final

from pydantic import Field

from extender.admin.answers.listed.columns import AnswerSchema
from extender.gangs import waiting_text
from extender.state.fields import api_times
from extender.state.gang_members import GangKey, kind_of
from extender.state.held_room import HeldRoom
from vgpu.domain.identifiers import Namespace, NodeName

UNNAMED: Final = "a gang of another namespace"

Row = dict[str, Any]


class KeptRoomSchema(AnswerSchema):
    """Room that is kept free for a gang that has waited for long."""

    gang: str = Field(description="the gang, to those who may see its pods", examples=["gang default/train"])
    cards: int = Field(description="cards of which anything is kept free", examples=[12])
    nodes: list[NodeName] = Field(examples=[["node-1", "node-3"]])
    priority: int = Field(
        description="pods of other gangs, of this priority or a lower one, do not get it", examples=[0]
    )
    since: str = Field(examples=["2026-11-22T12:00:00+00:00"])
    until: str = Field(description="at most; it ends when the gang is planned", examples=["2026-11-22T12:10:00+00:00"])


def shown(held: HeldRoom, sees: Callable[[Namespace], bool]) -> Row:
    """Return the row of `KeptRoomSchema`."""
    return {
        "gang": named(held.key) if sees(held.key[0]) else UNNAMED,
        "cards": held.cards,
        "nodes": sorted(held.usages),
        "priority": held.priority,
        "since": api_times.text(held.since_ms),
        "until": api_times.text(held.until_ms),
    }


def named(key: GangKey) -> str:
    """Name a gang: `gang default/train`."""
    return f"{kind_of(key)} {key[0]}/{key[2]}"


def words(kept: Row) -> str:
    """Say what is kept free, and from whom."""
    return (
        f"room on {kept['cards']} cards of {waiting_text.listed(kept['nodes'])} is kept free for it until "
        f"{kept['until']} at most, because it has waited for long; other pods of priority {kept['priority']} or lower "
        "do not get it"
    )
