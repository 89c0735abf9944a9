"""The rule of `vgpu.placement.fit` and the choice of a node's reason in `choose`, on arrays of many nodes.

Cards are judged in arrays of the shape (columns, rows).
"""

from typing import Final

import numpy as np

from extender.index.ask import ContainerAsk
from extender.index.codes import BY_PRECEDENCE, CODES, FIRST_LASTING, FITS, NO_CARD, membership
from extender.index.nodes import Codes, Ints, NodeIndex, Places
from extender.index.row import FIELDS
from vgpu.domain.cards import reasons
from vgpu.domain.cards.device import Card
from vgpu.domain.cards.reasons import Reason
from vgpu.domain.identifiers import UNNAMED_CARD

_FIELD: Final = {name: number for number, name in enumerate(FIELDS)}
_IS_CURABLE: Final = membership(reasons.CURABLE)
_NOT_ENOUGH_CARDS: Final = np.uint8(CODES[Reason.NOT_ENOUGH_CARDS])
_CARD_REASONS: Final = sorted(BY_PRECEDENCE, key=list(Reason).index)


def judge(index: NodeIndex, ask: ContainerAsk, places: Places | None) -> Codes:
    """Return the code of each row (None: of all rows): FITS, or why the node refuses the request.

    UUIDs that the request avoids are not looked at, and those it names are not found, whether it names them itself or
    by the pods on the cards: the caller places such nodes exactly.
    """
    amounts = index.amounts if places is None else index.amounts[:, :, places]
    cards = index.cards if places is None else index.cards[places]
    blocked = index.blocked if places is None else index.blocked[places]
    left = index.left if places is None else index.left[:, places]
    codes = card_codes(index, ask, amounts)
    is_refused = np.count_nonzero(codes == FITS, axis=0) < ask.gpus
    verdict: Codes = np.multiply(is_refused, _NOT_ENOUGH_CARDS, dtype=np.uint8)
    refused = (is_refused & (cards > 0)).nonzero()[0]  # rows that are free have no cards
    if len(refused):
        verdict[refused] = _node_codes(codes[:, refused], cards[refused], ask.gpus)
    offers_less = (left[0] < ask.devices[0]) & (ask.devices[0] > 0) | (left[1] < ask.devices[1]) & (ask.devices[1] > 0)
    verdict[offers_less & (verdict == FITS)] = CODES[Reason.KUBELET_OFFERS_LESS]
    np.copyto(verdict, blocked, where=blocked != FITS)
    return verdict


def card_codes(index: NodeIndex, ask: ContainerAsk, amounts: Ints) -> Codes:
    """Return the code of each card."""
    codes: Codes = amounts[_FIELD["closed_to_wholes" if ask.whole else "closed_to_shares"]].astype(np.uint8)
    if not ask.whole:
        lacks = (amounts[_FIELD["free_slices"]] < ask.slices) | (amounts[_FIELD["free_mib"]] < ask.mib)
        _raise(codes, lacks, Reason.CARD_INSUFFICIENT_MEMORY)
        if ask.cores:
            _raise(codes, amounts[_FIELD["free_cores"]] < ask.cores, Reason.CARD_INSUFFICIENT_CORES)
        _raise(codes, amounts[_FIELD["memory_mib"]] < ask.card_mib, Reason.CARD_TOO_SMALL)
    if ask.selector.in_space:
        _raise(codes, amounts[_FIELD["serves_space"]] == 0, Reason.CARD_WITHOUT_SPACE)
    if ask.selector.use_uuids:
        _raise(codes, np.True_, Reason.GPU_UUID_MISMATCH)
    if ask.selector.beside is not None:
        _raise(codes, np.True_, Reason.CARD_AFFINITY)
    if ask.selector.use_models or ask.selector.avoid_models:
        _raise(codes, _wrong_models(index, ask)[amounts[_FIELD["model"]]], Reason.GPU_MODEL_MISMATCH)
    return codes


def _raise(codes: Codes, where: np.ndarray | np.bool_, reason: Reason) -> None:
    """Raise the codes of cards to a reason's, where that takes precedence."""
    np.maximum(codes, np.multiply(where, np.uint8(CODES[reason]), dtype=np.uint8), out=codes)


def _wrong_models(index: NodeIndex, ask: ContainerAsk) -> np.ndarray:
    """Return for each number of a model whether the request does not accept it."""
    wrong = [
        ask.selector.refusal(Card(UNNAMED_CARD, 0, name, 0)) is Reason.GPU_MODEL_MISMATCH for name in index.models.names
    ]
    return np.array(wrong or [False])


def _node_codes(codes: Codes, cards: Ints, gpus: int) -> Codes:
    """Choose the reason of each refused node among its cards': `choose._node_refusal` on arrays."""
    is_lasting = (codes >= FIRST_LASTING) & (codes < NO_CARD)
    lasts = cards - np.count_nonzero(is_lasting, axis=0) < gpus
    counted = np.where(lasts == is_lasting, codes, FITS)
    is_curable = _IS_CURABLE[counted]
    counted = np.where(is_curable.any(axis=0) & ~is_curable, FITS, counted)
    best = np.zeros(codes.shape[1], np.int64)
    found = np.zeros(codes.shape[1], np.uint8)
    present = np.bincount(counted.ravel(), minlength=NO_CARD + 1)
    for reason in _CARD_REASONS:
        code = CODES[reason]
        if present[code]:
            count = np.count_nonzero(counted == code, axis=0)
            is_more = count > best
            found[is_more], best[is_more] = code, count[is_more]
    found[cards < gpus] = CODES[Reason.NOT_ENOUGH_CARDS]
    return found
