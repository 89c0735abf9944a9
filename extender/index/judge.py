"""Judges a request on the nodes that a call names.

The judgement of each recent request on all rows is kept. A later call judges only the rows that were written since.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.index import fit
from extender.index.answer import IndexAnswer
from extender.index.ask import ContainerAsk
from extender.index.codes import CODES, FITS, UNDECIDED, membership
from extender.index.nodes import Codes, NodeIndex, Places
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName

MAX_ASKS: Final = 256  # of 5,000 bytes each in a cluster of 5,000 nodes
_IS_PLACED: Final = membership((None, Reason.KUBELET_OFFERS_LESS))


@dataclass(slots=True)
class _KeptJudgement:
    codes: Codes
    version: int


class NodeJudge:
    """Answers from an index, which must be up to date; keeps the judgements of the requests asked last."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self._known: OrderedDict[ContainerAsk, _KeptJudgement] = OrderedDict()

    def alike(self, names: Sequence[NodeName], reason: Reason | None) -> IndexAnswer:
        """Return one judgement for all nodes: a refusal, or None where the pod fits everywhere."""
        codes = np.full(len(names), CODES[reason] if reason else FITS, np.uint8)
        return IndexAnswer(self._index, names, self._index.places(names), codes)

    def judge(
        self,
        asks: Sequence[ContainerAsk],
        names: Sequence[NodeName],
        now: float,
        exact: Iterable[NodeName],
        reserved: Iterable[NodeName],
    ) -> IndexAnswer:
        """Return the judgement of a request on the nodes named.

        `asks` are those of its containers that choose cards, in the kubelet's order; `now` is the monotonic time.
        Undecided are nodes on which several containers may fit, the nodes in `exact`, and of the nodes in `reserved`
        those that fit.
        """
        places = self._index.places(names)
        codes = self.codes(asks, exact, reserved)[places]
        codes[self._index.is_stale(places, now)] = CODES[Reason.PLUGIN_AWAY]
        codes[places < 0] = CODES[Reason.NO_INVENTORY]
        return IndexAnswer(self._index, names, places, codes)

    def prepare(self, asks: Sequence[ContainerAsk]) -> None:
        """Judge a request on the rows that were written since it was asked."""
        for ask in asks:
            self._codes(ask)

    def codes(self, asks: Sequence[ContainerAsk], exact: Iterable[NodeName], reserved: Iterable[NodeName]) -> Codes:
        """Return the code of each row, whatever its Lease. Do not change the array."""
        codes = self._codes(asks[0])
        if len(asks) > 1:
            for ask in asks[1:]:
                codes = np.where(_IS_PLACED[codes], self._codes(ask), codes)
            codes = np.where(_IS_PLACED[codes], np.uint8(UNDECIDED), codes)
        exactly, maybe = self._places(exact), self._places(reserved)
        if len(exactly) or len(maybe):
            codes = codes.copy()
            codes[exactly] = UNDECIDED
            codes[maybe[codes[maybe] == FITS]] = UNDECIDED
        return codes

    def _codes(self, ask: ContainerAsk) -> Codes:
        """Return the code of each row for one container. Do not change the array."""
        index, known = self._index, self._known.get(ask)
        if known is None or len(known.codes) != index.size:
            known = self._known[ask] = _KeptJudgement(fit.judge(index, ask, None), index.version)
        elif known.version != index.version:
            changed = np.flatnonzero(index.versions > known.version)
            known.codes[changed] = fit.judge(index, ask, changed)
            known.version = index.version
        self._known.move_to_end(ask)
        if len(self._known) > MAX_ASKS:
            self._known.popitem(last=False)
        return known.codes

    def _places(self, names: Iterable[NodeName]) -> Places:
        found = [place for name in names if (place := self._index.row_of(name)) is not None]
        return np.array(found, np.intp)
