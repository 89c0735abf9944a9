"""The nearest fit on arrays: which nodes lack the least for a container, as `explain.nearest` finds it."""

from typing import Final

import numpy as np

from extender.index import fit
from extender.index.ask import ContainerAsk
from extender.index.codes import FIRST_LASTING
from extender.index.nodes import Ints, NodeIndex, Places
from extender.index.row import FIELDS
from vgpu.domain.identifiers import NodeName
from vgpu.domain.quantity import FULL_CORES

_NEVER: Final = 1e9  # what a card lacks that ended pods would not free
_FIELD: Final = {name: number for number, name in enumerate(FIELDS)}


def nearest(index: NodeIndex, ask: ContainerAsk, places: Places) -> list[NodeName]:
    """Return those of the nodes in `places` that lack the least for a container, all equally little.

    `ask.card_mib` and `ask.cores` are what the container itself asks for; UUIDs that it names are not looked at.
    """
    lacks = _lacks(index, ask, places)
    if lacks is None or not len(places):
        return []
    distance, is_possible = lacks
    possible = np.flatnonzero(is_possible)
    if not len(possible):
        return []
    best = distance[:, possible[np.lexsort(distance[::-1, possible])[0]]]
    equal = is_possible & (distance == best[:, np.newaxis]).all(axis=0)
    return [index.name(place) for place in places[equal].tolist()]


def _lacks(index: NodeIndex, ask: ContainerAsk, places: Places) -> tuple[Ints, np.ndarray] | None:
    """Return for each place how many cards lack something, MiB and percent of time, and whether pods' ends help."""
    amounts = index.amounts[:, :, places]
    memory = amounts[_FIELD["memory_mib"]]
    mib = np.maximum(0, (memory if ask.whole else ask.card_mib) - amounts[_FIELD["free_mib"]])
    cores = np.maximum(0, (FULL_CORES if ask.whole else ask.cores) - amounts[_FIELD["free_cores"]])
    size = mib / np.maximum(1, memory) + cores / FULL_CORES
    size[fit.card_codes(index, ask, amounts) >= FIRST_LASTING] = _NEVER
    if ask.gpus > len(size):
        return None
    chosen = np.argsort(size, axis=0, kind="stable")[: ask.gpus] if ask.gpus > 1 else size.argmin(axis=0)[np.newaxis]
    size, mib, cores = (np.take_along_axis(amounts, chosen, axis=0) for amounts in (size, mib, cores))
    distance = np.stack([np.count_nonzero(size, axis=0), mib.sum(axis=0), cores.sum(axis=0)])
    return distance, (distance[0] > 0) & (size.max(axis=0) < _NEVER)
