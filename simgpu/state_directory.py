"""Writes the files of a state directory that describe cards and inject failures; README.md describes all files.

A process that runs with `SIMGPU_STATE` set to the directory sees the cards:

    state_directory.write_cards(directory, state_directory.make_cards(4, node="node-a"))
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vgpu.domain.identifiers import CardUuid

MAX_CARDS = 16
HANGS = -1
MODEL = "NVIDIA H100 80GB HBM3"

_NAMESPACE = uuid.UUID("4a3b8a1e-6f0c-4c53-9d0e-2f5d6b1c7a90")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCard:
    """One simulated card.

    Attributes:
        memory_mib: NVML's total. CUDA's total is `memory_mib - reserved_mib`.
        reserved_mib: the part of the memory that no program can use.
        context_mib: charged for each CUDA context.
        module_kib: charged for each loaded module.
        minor: the minor number of the device file; the index by default.
        healthy: a card that is not healthy is lost to NVML, and every CUDA call that needs it fails.
        recovery: nvmlDeviceGpuRecoveryAction_t, the repair that NVML says the card needs; 0 = none.
        compute_mode: nvmlComputeMode_t: 0 = default, 2 = prohibited, 3 = one process only. CUDA calls ignore it.
        capability: CUDA's compute capability as NVML says it, 90 for 9.0. CUDA calls ignore it.
        nvlink: UUIDs of the cards it is linked with.
    """

    uuid: CardUuid
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
    recovery: int = 0
    compute_mode: int = 0
    capability: int = 90
    nvlink: tuple[str, ...] = ()

    def line(self) -> str:
        """Return the card's line of the file `cards`."""
        minor = self.index if self.minor is None else self.minor
        fields = [
            f'uuid={self.uuid} index={self.index} minor={minor} numa={self.numa} model="{self.model}"',
            f"memoryMiB={self.memory_mib} reservedMiB={self.reserved_mib}",
            f"contextMiB={self.context_mib} moduleKiB={self.module_kib}",
            f"healthy={self.healthy:d} mig={self.mig:d} recovery={self.recovery}",
            f"computeMode={self.compute_mode} capability={self.capability}",
        ]
        if self.nvlink:
            fields.append(f"nvlink={','.join(self.nvlink)}")
        return " ".join(fields)


def card_uuid(node: str, index: int) -> CardUuid:
    """Return a UUID that depends only on the node's name and the card's index."""
    return CardUuid(f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}")


def make_cards(
    count: int, *, node: str = "node", memory_mib: int = 81920, reserved_mib: int = 0
) -> tuple[SimulatedCard, ...]:
    """Return equal cards, all linked by NVLink, the first half on NUMA node 0 and the rest on 1."""
    uuids = [card_uuid(node, index) for index in range(count)]
    return tuple(
        SimulatedCard(
            uuid=uuids[index],
            index=index,
            memory_mib=memory_mib,
            reserved_mib=reserved_mib,
            numa=index * 2 // count,
            nvlink=tuple(peer for peer in uuids if peer != uuids[index]),
        )
        for index in range(count)
    )


def write_cards(directory: Path, cards: Sequence[SimulatedCard]) -> None:
    """Write or replace the file `cards`; running processes see the change at their next call.

    Creates the directory, and the ledger's files, which processes of any user may write. Raises ValueError for more
    than `MAX_CARDS` cards.
    """
    if len(cards) > MAX_CARDS:
        raise ValueError(f"{len(cards)} cards: at most {MAX_CARDS} can be simulated")
    directory.mkdir(parents=True, exist_ok=True)
    for ledger in (directory / "state", directory / "shares"):
        if not ledger.exists():
            ledger.touch()
            ledger.chmod(0o666)
    _replace(directory / "cards", "".join(f"{card.line()}\n" for card in cards))


def write_visible(path: Path, uuids: Sequence[CardUuid]) -> None:
    """Write the list of the cards that a container sees.

    `path` is the file `visible` of its state directory, or `/run/simgpu-visible` in its file system.
    """
    _replace(path, "".join(f"{uuid}\n" for uuid in uuids))


def inject_faults(directory: Path, *faults: tuple[str, int] | tuple[str, int, int]) -> None:
    """Make functions return injected results: each fault is `(function, result[, times])`.

    `function@uuid` is an NVML function of one card, `*@uuid` all of them; the result HANGS lets it, or a CUDA function
    after cuInit, wait for the fault's end.
    Replaces all faults injected before, so a call without faults ends them.
    """
    _replace(directory / "fail", "".join(f"{' '.join(map(str, fault))}\n" for fault in faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlFailures:
    """Failures of NVML as a whole.

    Attributes:
        results: each failing call returns one of them.
        first: number of the first call, over all processes and functions, that may fail.
        percent: how many of the calls fail from then on.
        seed: decides which calls fail, and with which result.
    """

    results: tuple[int, ...] = (999,)
    first: int = 0
    percent: int = 100
    seed: int = 0

    def line(self) -> str:
        """Return the line of the file `fail`."""
        results = ",".join(map(str, self.results))
        return f"nvml* {results} from={self.first} percent={self.percent} seed={self.seed}"


def inject_nvml_failures(directory: Path, failures: NvmlFailures) -> None:
    """Let calls of NVML fail. Replaces all faults injected before; `inject_faults` without faults ends them."""
    _replace(directory / "fail", f"{failures.line()}\n")


def reload_driver(directory: Path) -> None:
    """Let NVML answer processes that initialised it before as after a reload of the driver."""
    (directory / "reloaded").unlink(missing_ok=True)
    (directory / "reloaded").touch()


def inject_xid(directory: Path, card: str, code: int) -> None:
    """Raise an XID event on the card of that UUID."""
    with (directory / "events").open("a") as events:
        events.write(f"xid {card} {code}\n")


def _replace(path: Path, text: str) -> None:
    """Write a file by a rename, so that no reader sees a part of it."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.rename(path)
