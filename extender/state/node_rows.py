"""Keeps the index of nodes up to date: which nodes have changed since their rows were written.

A change marks its node; the row is written before the next call is answered, and as soon as the event loop is free.
Then the question that each verb was asked last is answered again, so that the next call finds the answer: a crowd of
equal pods asks the same question again and again, and a Binding changes a row between two calls.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from extender.index.nodes import NodeIndex
from extender.index.row import IndexRow
from vgpu.domain.identifiers import NodeName
from vgpu.placement.models import Models

BATCH: Final = 16  # rows that are written between two looks at the clock; a row takes 0.1 ms
TIMES: Final = 3  # a pod changes its node's row when its cards are reserved, and when the watch shows it bound
SLICE_S: Final = 0.005  # for which rows are written before the event loop is given back


@dataclass(slots=True)
class _LastQuestion:
    answer: Callable[[], None]
    left: int = TIMES

    def answer_again(self) -> None:
        if self.left:
            self.left -= 1
            self.answer()


class NodeRows:
    """The index, and the nodes whose rows are old.

    `row` makes a node's row, None where the node has no cards; `models` gives models their bits. `is_written`: whether
    `run` has written all rows once.
    """

    def __init__(self, row: Callable[[NodeName], IndexRow | None], clock: Callable[[], float], models: Models) -> None:
        self.index = NodeIndex(models)
        self.is_written = False
        self._row = row
        self._clock = clock
        self._old: dict[NodeName, None] = {}
        self._is_old = asyncio.Event()
        self._questions: dict[str, _LastQuestion] = {}

    @property
    def waiting(self) -> int:
        """Number of rows that are old."""
        return len(self._old)

    def asked(self, verb: str, answer: Callable[[], None]) -> None:
        """Take how a verb's last question is answered: that is done again when `run` has written rows and none is old.

        It is done `TIMES` times at most.
        """
        self._questions[verb] = _LastQuestion(answer)

    def mark(self, node: NodeName) -> None:
        """Take a node that has changed."""
        self._old[node] = None
        self._is_old.set()

    async def update(self, pause: Callable[[float], Awaitable[None]]) -> NodeIndex:
        """Write all rows that are old, with pauses; return the index, up to date until the next change."""
        resumed = self._clock()
        while self._old:
            for name in list(itertools.islice(self._old, BATCH)):
                self._write(name)
            if self._clock() - resumed > SLICE_S:
                await pause(0)
                resumed = self._clock()
        return self.index

    def write(self) -> None:
        """Write all rows that are old at once: for few rows only."""
        for name in list(self._old):
            self._write(name)

    async def run(self) -> None:
        """Write rows as soon as they are old, until cancelled."""
        await self.update(asyncio.sleep)
        self.is_written = True
        while True:
            await self._is_old.wait()
            self._is_old.clear()
            await self.update(asyncio.sleep)
            await asyncio.sleep(0)  # calls that have arrived are answered first
            for question in () if self._old else self._questions.values():
                question.answer_again()

    def _write(self, name: NodeName) -> None:
        del self._old[name]
        row = self._row(name)
        if row is None:
            self.index.remove(name)
        else:
            self.index.put(row)
