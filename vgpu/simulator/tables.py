"""What `make run` draws on a terminal: addresses, cards and pods, in as many lines as the terminal has."""

import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vgpu.domain import quantity
from vgpu.domain.quantity import FULL_CORES
from vgpu.simulator.view import CardLine, PodLine, View

BAR_WIDTH: Final = 24
LEAST_POD_LINES: Final = 9  # below this the cards of a node share a line
NOTE_LINES: Final = 4  # of a pod that waits; `vgpu explain` has all of it
GAP: Final = 2  # columns between two columns of a table
COLOURS: Final = {"Running": "green", "Pending": "yellow", "Refused": "red", "Failed": "red"}


def screen(view: View, heads: Sequence[str], admin: str, width: int, height: int) -> Group:
    """Draw a view below its addresses; the latest pods, and of a small terminal one line for each node.

    The names of nodes and pods are links into the admin REST at `admin`, where it is not empty.
    """
    above = len(heads) + 1
    has_room = height - above - len(view.cards) - 1 >= LEAST_POD_LINES
    cards = cards_table(view.cards, admin) if has_room else nodes_table(view.cards, admin)
    room = height - above - cards.row_count - 2
    lines = [Text(head, no_wrap=True, overflow="ellipsis") for head in heads]
    return Group(*lines, Text(""), cards, pods_table(latest(view.pods, width, room), width, admin))


def latest(pods: Sequence[PodLine], width: int, room: int) -> list[PodLine]:
    """Return the last pods, as many as have room in this many lines; pods that wait or were refused come last."""
    ordered = sorted(pods, key=lambda pod: bool(pod.note))
    note_width = _note_width(pods, width)
    shown: list[PodLine] = []
    for pod in reversed(ordered):
        room -= max(1, len(_wrapped(pod.note, note_width)))
        if room < 0:
            break
        shown.insert(0, pod)
    return shown


def cards_table(cards: Sequence[CardLine], admin: str = "") -> Table:
    """Draw a line for each card."""
    table = _table("node", "card", "memory", "", "cores", "pods")
    for card in cards:
        bar = ProgressBar(card.memory_mib, card.used_mib, width=BAR_WIDTH)
        held = "whole" if card.is_whole else f"{card.cores} %"
        node = _linked(card.node, admin, f"/gpus?node={card.node}")
        table.add_row(node, str(card.index), bar, _memory(card.used_mib, card.memory_mib), held, _cut(card.tenants))
    return table


def nodes_table(cards: Sequence[CardLine], admin: str = "") -> Table:
    """Draw a line for each node."""
    table = _table("node", "cards", "memory", "", "cores", "pods")
    for name, group in groupby(cards, key=lambda card: card.node):
        of_node = list(group)
        used, total = sum(card.used_mib for card in of_node), sum(card.memory_mib for card in of_node)
        bar = ProgressBar(total, used, width=BAR_WIDTH)
        cores = f"{sum(card.cores for card in of_node)} of {FULL_CORES * len(of_node)} %"
        tenants = dict.fromkeys(pod for card in of_node for pod in card.tenants)
        node = _linked(name, admin, f"/gpus?node={name}")
        table.add_row(node, str(len(of_node)), bar, _memory(used, total), cores, _cut([*tenants]))
    return table


def pods_table(pods: Sequence[PodLine], width: int, admin: str = "") -> Table:
    """Draw the pods; the last column says where a pod is, or why it is nowhere."""
    table = _table("pod", "asks for", "phase", "where, or why not")
    note_width = _note_width(pods, width)
    for pod in pods:
        phase = Text(pod.phase, COLOURS.get(pod.phase, "dim"))
        name = _linked(pod.name, admin, f"/pods?name={pod.name}")
        last = Text("\n".join(_wrapped(pod.note, note_width)) or pod.where)
        table.add_row(name, pod.asks, phase, last)
    return table


def _note_width(pods: Sequence[PodLine], width: int) -> int:
    """Return the columns that a terminal of this width leaves for the last column of pods."""
    others = ("pod", "asks for", "phase"), *((pod.name, pod.asks, pod.phase) for pod in pods)
    taken = sum(max(map(len, column)) + GAP for column in zip(*others, strict=True))
    return max(20, width - taken)


def _wrapped(note: str, width: int) -> list[str]:
    return textwrap.wrap(note, width, max_lines=NOTE_LINES, placeholder=" ...")


def _table(*titles: str) -> Table:
    """Return a table whose last column alone gives way where the terminal is narrow."""
    table = Table(box=None, header_style="dim", padding=(0, GAP, 0, 0), pad_edge=False)
    for title in titles:
        table.add_column(title, no_wrap=title != titles[-1])
    return table


def _linked(text: str, admin: str, path: str) -> Text:
    """Return a name that a terminal opens in the admin REST."""
    return Text(text, style=f"link {admin}/api/v1{path}" if admin else "")


def _cut(names: Sequence[str]) -> Text:
    """Return one line of plain text, cut where it does not fit; markup in users' texts is not interpreted."""
    return Text(", ".join(names), no_wrap=True, overflow="ellipsis")


def _memory(used_mib: int, total_mib: int) -> str:
    return f"{quantity.human_mib(used_mib)} of {quantity.human_mib(total_mib)}"
