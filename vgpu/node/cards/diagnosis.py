"""Which cards are unhealthy, and why: decided from XIDs and polls. Pure. Times are arguments, in seconds.

A fault counts at once. It ends when the card has answered several polls in succession without a fault, and an XID's
quarantine is over: a card that comes and goes is not given out each time that it comes. An administrator ends a fault
that a card does not lose by itself by naming it in the GPUNode's spec, which holds until the fault is another one.
"""

from collections.abc import Mapping
from typing import Final

from vgpu.adapters.nvml.records import Xid
from vgpu.domain.identifiers import CardUuid
from vgpu.node.cards import xids
from vgpu.node.cards.xids import Cause

# Faults with which a card answers and computes. Others cannot be acknowledged: the card cannot be used.
_ACKNOWLEDGEABLE: Final = ("Xid", "UncorrectableEcc", "RowRemap", "RecoveryNeeded")


class CardDiagnosis:
    """The faults of a node's cards."""

    def __init__(self, quarantine_s: float, recovery_polls: int = 1) -> None:
        self._quarantine_s = quarantine_s
        self._recovery_polls = recovery_polls
        self._xids: dict[CardUuid, tuple[int, float]] = {}
        self._polled: dict[CardUuid, str] = {}
        self._good: dict[str, int] = {}
        self._acknowledged: Mapping[CardUuid, str] = {}

    def xid(self, xid: Xid, now: float) -> None:
        """Take an error. An error that names no card marks none: the next poll finds the card."""
        if xid.gpu is not None and xids.cause(xid.code) is Cause.CARD:
            self._xids[xid.gpu] = (xid.code, now)
            self._good[xid.gpu] = 0

    def polled(self, faults: Mapping[CardUuid, str]) -> None:
        """Take the fault of every card: empty for healthy."""
        for gpu, fault in faults.items():
            self._good[gpu] = 0 if fault else self._good.get(gpu, 0) + 1
            if fault:
                self._polled[gpu] = fault
            elif self._has_recovered(gpu):
                self._polled.pop(gpu, None)

    def acknowledge(self, faults: Mapping[CardUuid, str]) -> None:
        """Take the faults that an administrator has dealt with, by card."""
        self._acknowledged = dict(faults)

    def faults(self, now: float) -> dict[CardUuid, str]:
        """Return each unhealthy card's fault: NVML's answer to the polls, else the XID that is in quarantine."""
        recent = {gpu: f"Xid{code}" for gpu, (code, at) in self._xids.items() if self._is_in_quarantine(gpu, at, now)}
        found = recent | self._polled
        return {gpu: fault for gpu, fault in found.items() if not self._is_acknowledged(gpu, fault)}

    def _is_in_quarantine(self, gpu: CardUuid, at: float, now: float) -> bool:
        return now - at < self._quarantine_s or not self._has_recovered(gpu)

    def _has_recovered(self, gpu: CardUuid) -> bool:
        return self._good.get(gpu, 0) >= self._recovery_polls

    def _is_acknowledged(self, gpu: CardUuid, fault: str) -> bool:
        return self._acknowledged.get(gpu) == fault and fault.startswith(_ACKNOWLEDGEABLE)
