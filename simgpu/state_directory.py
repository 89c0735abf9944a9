"""Describes cards to the simulated driver, injects failures, and reads what is held: the Python end of ``build.py``.

``write_cards(directory, make_cards(4, node="node-a"))`` and ``SIMGPU_STATE=directory`` are a node with four cards.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = (
    "Card",
    "card_uuid",
    "inject_faults",
    "inject_xid",
    "make_cards",
    "write_cards",
    "write_visible",
)

MAX_CARDS = 16
MODEL = "NVIDIA H100 80GB HBM3"

_NAMESPACE = uuid.UUID("4a3b8a1e-6f0c-4c53-9d0e-2f5d6b1c7a90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One simulated card. Sizes in MiB, a module's in KiB; CUDA sees ``memory_mib - reserved_mib`` as the total."""

    uuid: str
    index: int
    model: str = MODEL
    memory_mib: int = 81559
    reserved_mib: int = 551
    context_mib: int = 0
    module_kib: int = 0
    numa: int = 0
    minor: int | None = None
    healthy: bool = True
    mig: bool = False
    recovery: int = 0  # the repair NVML says it needs, nvmlDeviceGpuRecoveryAction_t
    nvlink: tuple[str, ...] = ()

    def line(self) -> str:
        """The card's line in the file ``cards``."""
        minor = self.index if self.minor is None else self.minor
        fields = [
            f'uuid={self.uuid} index={self.index} minor={minor} numa={self.numa} model="{self.model}"',
            f"memoryMiB={self.memory_mib} reservedMiB={self.reserved_mib}",
            f"contextMiB={self.context_mib} moduleKiB={self.module_kib}",
            f"healthy={self.healthy:d} mig={self.mig:d} recovery={self.recovery}",
        ]
        if self.nvlink:
            fields.append(f"nvlink={','.join(self.nvlink)}")
        return " ".join(fields)


def card_uuid(node: str, index: int) -> str:
    """The same UUID for the same node and index, always."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"


def make_cards(count: int, *, node: str = "node", memory_mib: int = 81920, reserved_mib: int = 0) -> tuple[Card, ...]:
    """``count`` equal cards, joined by NVLink, the first half on NUMA node 0 and the rest on 1."""
    uuids = [card_uuid(node, index) for index in range(count)]
    return tuple(
        Card(
            uuid=uuids[index],
            index=index,
            memory_mib=memory_mib,
            reserved_mib=reserved_mib,
            numa=index * 2 // count,
            nvlink=tuple(peer for peer in uuids if peer != uuids[index]),
        )
        for index in range(count)
    )


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.rename(path)


def write_cards(directory: Path, cards: Sequence[Card]) -> None:
    """Makes or changes the directory's cards; running processes see it at their next call.

    Also makes the ledger, writable by all, so that a container of any user can use the directory.
    """
    if len(cards) > MAX_CARDS:
        raise ValueError(f"{len(cards)} cards: the simulated driver knows {MAX_CARDS}")
    directory.mkdir(parents=True, exist_ok=True)
    for ledger in (directory / "state", directory / "shares"):
        if not ledger.exists():
            ledger.touch()
            ledger.chmod(0o666)
    _replace(directory / "cards", "".join(f"{card.line()}\n" for card in cards))


def write_visible(path: Path, uuids: Sequence[str]) -> None:
    """Restricts a container to these cards: ``path`` is ``visible`` in its directory or ``/run/simgpu-visible``."""
    _replace(path, "".join(f"{each}\n" for each in uuids))


def inject_faults(directory: Path, *faults: tuple[str, int] | tuple[str, int, int]) -> None:
    """From now on each ``(function, result[, times])`` and no other; none at all ends every failure."""
    _replace(directory / "fail", "".join(f"{' '.join(map(str, fault))}\n" for fault in faults))


def inject_xid(directory: Path, card: str, code: int) -> None:
    """Raises an XID event on the card of that UUID."""
    with (directory / "events").open("a") as events:
        events.write(f"xid {card} {code}\n")
