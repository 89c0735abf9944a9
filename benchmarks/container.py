"""A container of a benchmark: limits and a region as files, and the environment of its programs."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from limiter import launch
from vgpu.adapters import mps
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.asks.space import SpaceGroup
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, SpaceMembership
from vgpu.domain.formats.region import Region
from vgpu.domain.identifiers import Namespace

GROUP: Final = SpaceGroup(Namespace("benchmark"), "")


def native_env(pipe: Path | None = None) -> dict[str, str]:
    """Return the environment without limits, with CUDA's cards in NVML's order; with `pipe`, of clients of a daemon."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_") and name != "LD_PRELOAD"}
    below = {} if pipe is None else {mps.PIPE_DIRECTORY: str(pipe)}
    return kept | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | below


def limiter_settings() -> dict[str, str]:
    """Return the settings of the limiter's that a benchmark passes on to its containers."""
    return {name: os.environ[name] for name in ("VGPU_QUEUE_AHEAD",) if name in os.environ}


class LimitedContainer:
    """Limits for the programs that run with `env`. No arbiter looks at the container.

    Args:
        memory: as `limiter.preload` takes it; a plain number is MiB.
        cores: percent of a card's time; 100: no limit.
        pipe: pipe directory of the daemon of a group in space that the container is a member of; None: of no group.
    """

    def __init__(self, memory: str, cores: int = 100, pipe: Path | None = None) -> None:
        wanted = launch.parse(memory, cores, "fixed")
        if pipe is not None:
            member = SpaceMembership(GROUP.fingerprint, None)
            wanted = replace(wanted, compute_policy=ComputePolicy.BURST, space=member)
        self._wanted = wanted
        self.folder = launch.write_files(wanted)
        self.env = native_env() | launch.variables(self.folder, {}) | {"VGPU_LOG": "off"}
        if pipe is not None:
            self.env[launch.SPACE_ENV] = str(pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def region(self) -> Region:
        """Return the accounts as they are now."""
        return region.decode((self.folder / "region").read_bytes())

    def outside_group(self) -> int:
        """Return how many of the processes are no clients of the group's server; 0 where it is no member."""
        return region.outside_group((self.folder / "region").read_bytes())

    def used(self) -> int:
        """Return the bytes charged on all cards."""
        return sum(card.used_bytes for card in self.region().cards)

    def held_by(self, *pids: int) -> int:
        """Return the bytes charged to these processes; to all processes when none is named."""
        processes = self.region().processes
        return sum(sum(dict(process.used_bytes).values()) for process in processes if not pids or process.pid in pids)

    def limit(self, size: int) -> None:
        """Rewrite the memory limit in place, as the device plugin does, and return once programs have noticed."""
        path = self.folder / "limits"
        wanted = replace(self._wanted, cards=(CardLimit(ANY_GPU, size),))
        with path.open("r+b") as file:
            for offset, piece in limits.rewrite(path.read_bytes(), wanted):
                file.seek(offset)
                file.write(piece)
                file.flush()
        time.sleep(limits.NOTICED_S)
