"""The judgement of each recent request on all rows. A later call judges only the rows that were written since."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.index import fit
from extender.index.ask import ContainerAsk
from extender.index.nodes import Codes, NodeIndex

MAX_ASKS: Final = 256  # of 5,000 bytes each in a cluster of 5,000 nodes


@dataclass(slots=True)
class _KeptJudgement:
    codes: Codes
    version: int


class Judgements:
    """The judgements of the requests asked last, on one index."""

    def __init__(self, index: NodeIndex, max_asks: int = MAX_ASKS) -> None:
        self._index = index
        self._max_asks = max_asks
        self._known: OrderedDict[ContainerAsk, _KeptJudgement] = OrderedDict()

    def codes(self, ask: ContainerAsk) -> Codes:
        """Return the code of each row. Do not change the array."""
        index, known = self._index, self._known.get(ask)
        if known is None or len(known.codes) != index.size:
            known = self._known[ask] = _KeptJudgement(fit.judge(index, ask, None), index.version)
        elif known.version != index.version:
            changed = np.flatnonzero(index.versions > known.version)
            known.codes[changed] = fit.judge(index, ask, changed)
            known.version = index.version
        self._known.move_to_end(ask)
        if len(self._known) > self._max_asks:
            self._known.popitem(last=False)
        return known.codes
