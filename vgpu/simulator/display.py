"""Displays views: as live tables on a terminal, elsewhere as lines about what has changed."""

from collections.abc import Iterator
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vgpu import quantity
from vgpu.simulator.view import CardRow, PodRow, View

BAR_WIDTH: Final = 24
MARGIN: Final = 4  # lines of the terminal without a card or a pod
COLOURS: Final = {"Running": "green", "Pending": "yellow", "Refused": "red", "Failed": "red"}


class Display(Protocol):
    """Displays views between `start` and `stop`."""

    def link(self, admin: str) -> None:
        """Take the URL of the admin REST."""

    def start(self) -> None:
        """Begin to display."""

    def show(self, view: View) -> None:
        """Display a view."""

    def stop(self) -> None:
        """Stop, and restore the terminal."""


class LiveTables:
    """Two tables on a terminal, updated in place.

    The names of nodes and pods are links into the admin REST, where `admin` is its URL: empty until `link` is called.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._admin = ""
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def link(self, admin: str) -> None:
        """Make names links into the admin REST at this URL."""
        self._admin = admin

    def start(self) -> None:
        """Begin to draw."""
        self._live.start()

    def show(self, view: View) -> None:
        """Draw a view, with as many pods as there is room for."""
        room = max(5, self._console.height - len(view.cards) - MARGIN)
        tables = Group(cards_table(view.cards, self._admin), pods_table(view.pods[-room:], self._admin))
        self._live.update(tables, refresh=True)

    def stop(self) -> None:
        """Stop drawing; the last view stays."""
        self._live.stop()


class ChangeLines:
    """No terminal: a line for each card and pod that changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._before = View((), ())

    def link(self, admin: str) -> None:
        """Lines have no links."""

    def start(self) -> None:
        """Nothing to prepare."""

    def show(self, view: View) -> None:
        """Print what has changed since the last view."""
        for line in changes(self._before, view):
            self._console.out(line, highlight=False)
        self._before = view

    def stop(self) -> None:
        """Nothing to restore."""


def changes(before: View, after: View) -> Iterator[str]:
    """Yield a line for each difference between two views; an empty card that is new gives no line."""
    known = {(card.node, card.index): card for card in before.cards}
    rows = {pod.name: pod for pod in before.pods}
    for pod in after.pods:
        if rows.get(pod.name) != pod:
            yield pod_line(pod)
    for card in after.cards:
        old = known.get((card.node, card.index))
        if card != old and (old is not None or card.tenants):
            yield card_line(card)
    for name in rows.keys() - {pod.name for pod in after.pods}:
        yield f"pod {name}: gone"


def pod_line(pod: PodRow) -> str:
    """Describe a pod."""
    parts = [pod.phase, f"on {pod.where}" if pod.where else "", f"({pod.asks})" if pod.asks else ""]
    return f"pod {pod.name}: {' '.join(filter(None, parts))}{f': {pod.note}' if pod.note else ''}"


def card_line(card: CardRow) -> str:
    """Describe a card."""
    held = "whole" if card.is_whole else f"{_memory(card)}, {card.cores} %"
    return f"card {card.node}/{card.index}: {held}: {', '.join(card.tenants) or 'nobody'}"


def cards_table(cards: tuple[CardRow, ...], admin: str = "") -> Table:
    """Draw the cards."""
    table = _table("node", "card", "memory", "", "cores", last="pods")
    for card in cards:
        bar = ProgressBar(card.memory_mib, card.used_mib, width=BAR_WIDTH)
        held = "whole" if card.is_whole else f"{card.cores} %"
        node = _linked(card.node, admin, f"/gpus?node={card.node}")
        table.add_row(node, str(card.index), bar, _memory(card), held, _cut(", ".join(card.tenants)))
    return table


def pods_table(pods: tuple[PodRow, ...], admin: str = "") -> Table:
    """Draw the pods."""
    table = _table("pod", "asks for", "phase", "where", last="why")
    for pod in pods:
        phase = Text(pod.phase, COLOURS.get(pod.phase, "dim"))
        name = _linked(pod.name, admin, f"/pods?name={pod.name}")
        table.add_row(name, pod.asks, phase, pod.where, _cut(pod.note))
    return table


def _table(*titles: str, last: str) -> Table:
    """Return a table whose last column is cut where the terminal is narrow."""
    table = Table(box=None, header_style="dim")
    for title in titles:
        table.add_column(title, no_wrap=True)
    table.add_column(last)
    return table


def _linked(text: str, admin: str, path: str) -> Text:
    """Return a name that a terminal opens in the admin REST."""
    return Text(text, style=f"link {admin}/api/v1{path}" if admin else "")


def _cut(text: str) -> Text:
    """Return one line of plain text, cut where it does not fit; markup in users' texts is not interpreted."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _memory(card: CardRow) -> str:
    return f"{quantity.human_mib(card.used_mib)} of {quantity.human_mib(card.memory_mib)}"
