"""A container on a real GPU: limits and a region as files, and the environment of its programs. Needs no pytest."""

import os
import shutil
import time
from typing import Self

from limiter import launch
from vgpu.domain.formats import limits, region
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits
from vgpu.domain.formats.region import Region


def native_env() -> dict[str, str]:
    """The environment without limits, with CUDA's cards in NVML's order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_") and name != "LD_PRELOAD"}
    return kept | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


class Container:
    """Limits for the programs that run with `env`; no arbiter.

    `cores` is percent of a card's time; 100: no limit.
    """

    def __init__(self, memory: str, cores: int = 100) -> None:
        self.folder = launch.write_files(launch.parse(memory, cores, "fixed"))
        self.env = native_env() | launch.variables(self.folder, {}) | {"VGPU_LOG": "off"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def region(self) -> Region:
        return region.decode((self.folder / "region").read_bytes())

    def limit(self, size: int) -> None:
        """Rewrites the limit in place, as the device plugin does, and returns once programs have noticed."""
        path = self.folder / "limits"
        wanted = Limits((CardLimit(ANY_GPU, size),))
        with path.open("r+b") as file:
            for offset, piece in limits.rewrite(path.read_bytes(), wanted):
                file.seek(offset)
                file.write(piece)
                file.flush()
        time.sleep(limits.NOTICED_S)
