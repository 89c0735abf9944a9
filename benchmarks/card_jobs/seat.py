"""The place of a process in its job, from its command line, and the number of the last step, which ranks agree on."""

import argparse
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

LAST_STEPS: Final = (
    "last-steps"  # file in the job's folder: for each phase the number of its last step, 0 = not yet known
)
MOST_PHASES: Final = 512
NUMBER_SIZE: Final = 8


@dataclass(frozen=True, slots=True)
class Seat:
    """One process of a job.

    Attributes:
        rank: of the process.
        ranks: processes of the job.
        card: number of its first card.
        cards: of this process.
        folder: that all processes of the job share.
        backend: of the collectives. `gloo`: on the processor with tiny sizes, to try the programs without cards.
        times: how many times the usual work a step has.
    """

    rank: int
    ranks: int
    card: int
    cards: int
    folder: Path
    backend: str = "nccl"
    times: int = 1

    @property
    def is_on_cards(self) -> bool:
        """Whether it computes on cards."""
        return self.backend == "nccl"

    def environment(self) -> dict[str, str]:
        """Return what a process needs in its environment.

        Ranks meet on the loopback interface. On the processor JAX has as many devices as the process has cards.
        """
        if self.is_on_cards:
            return {"NCCL_SOCKET_IFNAME": "lo"}
        return {
            "GLOO_SOCKET_IFNAME": "lo",
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={self.cards}",
        }

    def arguments(self) -> list[str]:
        """Return the command line that `of` reads."""
        sizes = (self.rank, self.ranks, self.card, self.cards, self.folder, self.backend, self.times)
        return [str(size) for size in sizes]

    @classmethod
    def of(cls, arguments: list[str]) -> Self:
        """Read a command line."""
        parser = argparse.ArgumentParser()
        for name in ("rank", "ranks", "card", "cards"):
            parser.add_argument(name, type=int)
        parser.add_argument("folder", type=Path)
        parser.add_argument("backend", choices=["nccl", "gloo"])
        parser.add_argument("times", type=int)
        return cls(**vars(parser.parse_args(arguments)))


def make_folder(folder: Path) -> None:
    """Write what the processes of a job find in their folder."""
    (folder / LAST_STEPS).write_bytes(bytes(NUMBER_SIZE * MOST_PHASES))


class LastStep:
    """The number of a phase's last step. The first rank chooses it, so that no rank waits for a step that others skip.

    A rank that has launched step N + ahead + 1 waits for the end of step N + 1, and a collective ends only after the
    first rank has launched it. So when the first rank, which has launched N steps, chooses N + ahead + 1, no rank has
    launched more, and each one sees the number before it would.
    """

    def __init__(self, folder: Path, phase: int) -> None:
        with (folder / LAST_STEPS).open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), NUMBER_SIZE * MOST_PHASES)).cast("q")
        self._phase = phase

    def choose(self, launched: int, ahead: int) -> None:
        """Choose the last step, unless it is chosen."""
        if not self._numbers[self._phase]:
            self._numbers[self._phase] = launched + ahead + 1

    def is_reached(self, launched: int) -> bool:
        """Whether no further step must be launched."""
        return 0 < self._numbers[self._phase] <= launched
