"""Displays views: on a terminal as a screen that is redrawn, elsewhere as lines about what has changed."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.live import Live

from vgpu.domain import quantity
from vgpu.simulator import tables
from vgpu.simulator.view import CardLine, PodLine, View


class Display(Protocol):
    """Displays views between `start` and `stop`."""

    def start(self, heads: Sequence[str], admin: str, /) -> None:
        """Begin with the lines that stay in view; `admin` is the URL of the admin REST."""

    def show(self, view: View) -> None:
        """Display a view."""

    def stop(self) -> None:
        """Stop, and restore the terminal."""


class LiveScreen:
    """A terminal's alternate screen, drawn as a whole for each view: a change of the terminal's size leaves no rest."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._heads: Sequence[str] = ()
        self._admin = ""
        self._last = View((), ())
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def start(self, heads: Sequence[str], admin: str, /) -> None:
        """Begin to draw."""
        self._heads, self._admin = heads, admin
        self._live.start()

    def show(self, view: View) -> None:
        """Draw a view in the terminal's size of now."""
        self._last = view
        width, height = self._console.size
        self._live.update(tables.screen(view, self._heads, self._admin, width, height), refresh=True)

    def stop(self) -> None:
        """Go back to the terminal's own screen, and leave the last view there."""
        if self._live.is_started:
            self._live.stop()
            width, height = self._console.size
            self._console.print(tables.screen(self._last, (), "", width, height))


class ChangeLines:
    """No terminal: a line for each card and pod that changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._before = View((), ())

    def start(self, heads: Sequence[str], _: str, /) -> None:
        """Print the lines."""
        for line in heads:
            self._console.out(line, highlight=False)

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


def pod_line(pod: PodLine) -> str:
    """Describe a pod."""
    parts = [pod.phase, f"on {pod.where}" if pod.where else "", f"({pod.asks})" if pod.asks else ""]
    return f"pod {pod.name}: {' '.join(filter(None, parts))}{f': {pod.note}' if pod.note else ''}"


def card_line(card: CardLine) -> str:
    """Describe a card."""
    held = "whole" if card.is_whole else f"{_memory(card)}, {card.cores} %"
    return f"card {card.node}/{card.index}: {held}: {', '.join(card.tenants) or 'nobody'}"


def _memory(card: CardLine) -> str:
    return f"{quantity.human_mib(card.used_mib)} of {quantity.human_mib(card.memory_mib)}"
