"""Filter's answer on the nodes that a call names: a code for each, and their names as JSON."""

from collections.abc import Collection, Sequence

import numpy as np

from extender.index.codes import CODES, FITS, REASONS, UNDECIDED, membership
from extender.index.nodes import Codes, NodeIndex, Places
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import NodeName


class IndexAnswer:
    """The judgement of one pod. It stays as it is when the index changes."""

    def __init__(self, index: NodeIndex, names: Sequence[NodeName], places: Places, codes: Codes) -> None:
        self.names = names
        self._encoded = index.encode(names, places)
        self._codes = codes

    @property
    def undecided(self) -> list[int]:
        """The positions of the nodes that must be placed exactly."""
        found: list[int] = np.flatnonzero(self._codes == UNDECIDED).tolist()
        return found

    def decide(self, position: int, reason: Reason | None) -> None:
        """Set the judgement on one node: a refusal, or None where the pod fits."""
        self._codes[position] = CODES[reason] if reason else FITS

    @property
    def fits(self) -> bool:
        """Whether any node fits."""
        return bool((self._codes == FITS).any())

    @property
    def reasons(self) -> dict[Reason, int]:
        """How many nodes were refused for each reason."""
        if not self._codes.any():
            return {}
        counts = np.bincount(self._codes, minlength=len(REASONS)).tolist()
        return {reason: count for reason, count in zip(REASONS, counts, strict=False) if reason and count}

    def open(self) -> list[NodeName]:
        """Return the names of the nodes that fit, or that must be placed exactly."""
        is_open = (self._codes == FITS) | (self._codes == UNDECIDED)
        return [self.names[position] for position in np.flatnonzero(is_open).tolist()]

    def fitting(self) -> list[bytes]:
        """Return the names of the nodes that fit, as JSON."""
        return self._json(FITS)

    def refused(self) -> dict[Reason, list[bytes]]:
        """Return the names of the nodes that were refused, as JSON, by reason."""
        return {reason: self._json(CODES[reason]) for reason in self.reasons}

    def refused_for(self, reasons: Collection[Reason]) -> list[NodeName]:
        """Return the names of the nodes that were refused for any of these reasons."""
        is_one = membership(reasons)[self._codes]
        return [self.names[position] for position in is_one.nonzero()[0].tolist()]

    def _json(self, code: int) -> list[bytes]:
        found: list[bytes] = self._encoded[self._codes == code].tolist()
        return found
