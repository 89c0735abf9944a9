"""A container of a benchmark: limits and a region as files, and the environment of its programs."""

import os
import shutil
import time
from typing import Self

from limiter import launch
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.formats.region import Region


def native_env() -> dict[str, str]:
    """Return the environment without limits, with CUDA's cards in NVML's order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_") and name != "LD_PRELOAD"}
    return kept | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def limiter_settings() -> dict[str, str]:
    """Return the settings of the limiter's that a benchmark passes on to its containers."""
    return {name: os.environ[name] for name in ("VGPU_QUEUE_AHEAD",) if name in os.environ}


class LimitedContainer:
    """Limits for the programs that run with `env`. No arbiter looks at the container.

    Args:
        memory: as `limiter.preload` takes it; a plain number is MiB.
        cores: percent of a card's time; 100: no limit.
    """

    def __init__(self, memory: str, cores: int = 100) -> None:
        self.folder = launch.write_files(launch.parse(memory, cores, "fixed"))
        self.env = native_env() | launch.variables(self.folder, {}) | {"VGPU_LOG": "off"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def region(self) -> Region:
        """Return the accounts as they are now."""
        return region.decode((self.folder / "region").read_bytes())

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
        wanted = Limits((CardLimit(ANY_GPU, size),))
        with path.open("r+b") as file:
            for offset, piece in limits.rewrite(path.read_bytes(), wanted):
                file.seek(offset)
                file.write(piece)
                file.flush()
        time.sleep(limits.NOTICED_S)
