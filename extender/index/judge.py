"""Judges a request on the nodes that a call names."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from extender.index.answer import IndexAnswer
from extender.index.ask import ContainerAsk
from extender.index.codes import CODES, FITS, UNDECIDED, membership
from extender.index.judgements import Judgements
from extender.index.last_question import LastQuestion
from extender.index.nodes import Codes, NodeIndex, Places
from vgpu.domain.cards.reasons import Reason

_IS_PLACED: Final = membership((None, Reason.KUBELET_OFFERS_LESS))


class NodeJudge:
    """Answers from an index, which must be up to date."""

    def __init__(self, index: NodeIndex) -> None:
        self._index = index
        self._judgements = Judgements(index)
        self._last = LastQuestion[Sequence[ContainerAsk]]()

    def alike(self, names: Sequence[str], reason: Reason | None) -> IndexAnswer:
        """Return one judgement for all nodes: a refusal, or None where the pod fits everywhere."""
        codes = np.full(len(names), CODES[reason] if reason else FITS, np.uint8)
        return IndexAnswer(self._index, names, self._index.places(names), codes)

    def judge(
        self,
        asks: Sequence[ContainerAsk],
        names: Sequence[str],
        now: float,
        exact: Iterable[str],
        reserved: Iterable[str],
    ) -> IndexAnswer:
        """Return the judgement of a request on the nodes named.

        `asks` are those of its containers that choose cards, in the kubelet's order; `now` is the monotonic time.
        Undecided are nodes on which several containers may fit, the nodes in `exact`, and of the nodes in `reserved`
        those that fit.
        """
        self._last.asked(asks)
        places = self._index.places(names)
        codes = self.codes(asks, exact, reserved)[places]
        codes[self._index.is_stale(places, now)] = CODES[Reason.PLUGIN_AWAY]
        codes[places < 0] = CODES[Reason.NO_INVENTORY]
        return IndexAnswer(self._index, names, places, codes)

    def prepare(self) -> None:
        """Judge the rows that were written since for the request asked last."""
        for ask in self._last.again() or ():
            self._judgements.codes(ask)

    def codes(self, asks: Sequence[ContainerAsk], exact: Iterable[str], reserved: Iterable[str]) -> Codes:
        """Return the code of each row, whatever its Lease. Do not change the array."""
        codes = self._judgements.codes(asks[0])
        if len(asks) > 1:
            for ask in asks[1:]:
                codes = np.where(_IS_PLACED[codes], self._judgements.codes(ask), codes)
            codes = np.where(_IS_PLACED[codes], np.uint8(UNDECIDED), codes)
        exactly, maybe = self._known(exact), self._known(reserved)
        if len(exactly) or len(maybe):
            codes = codes.copy()
            codes[exactly] = UNDECIDED
            codes[maybe[codes[maybe] == FITS]] = UNDECIDED
        return codes

    def _known(self, names: Iterable[str]) -> Places:
        found = [place for name in names if (place := self._index.row_of(name)) is not None]
        return np.array(found, np.intp)
