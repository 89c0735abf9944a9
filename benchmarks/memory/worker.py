"""A process of `worker.c`, natively or under a limit, and the container it stands for."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from benchmarks.programs.process import Program
from limiter import launch
from vgpu import limits, region
from vgpu.limits import ANY_GPU, CardLimit, Limits
from vgpu.region import Region

MIB = 1 << 20
OUT_OF_MEMORY = 2
MISSING = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command did: CUresult, or MISSING where the driver lacks the function that failed; how long it took."""

    result: int
    function: str
    id: int = -1
    ns: int = 0

    def __str__(self) -> str:
        if self.result == MISSING:
            return f"no {self.function}"
        return f"{self.function} {self.result}" if self.result else "ok"


class Container:
    """Limits and a region of their own, as files; `env` is for the programs that share them."""

    def __init__(self, memory: str) -> None:
        self.folder = launch.write_files(launch.parse(memory, None, "fixed"))
        self.env = native_env() | launch.variables(self.folder, {}) | {"VGPU_LOG": "off"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def region(self) -> Region:
        """Return the accounts as they stand."""
        return region.decode((self.folder / "region").read_bytes())

    def used(self) -> int:
        """Return the bytes charged on all cards."""
        return sum(card.used_bytes for card in self.region().cards)

    def held_by(self, *pids: int) -> int:
        """Return the bytes charged to these processes; all where none is named."""
        processes = self.region().processes
        return sum(sum(dict(each.used_bytes).values()) for each in processes if not pids or each.pid in pids)

    def limit(self, size: int) -> None:
        """Rewrite the limits in place, as the device plugin does; in force at the next allocation."""
        path = self.folder / "limits"
        wanted = Limits((CardLimit(ANY_GPU, size),))
        with path.open("r+b") as file:
            for offset, piece in limits.rewrite(path.read_bytes(), wanted):
                file.seek(offset)
                file.write(piece)
                file.flush()


class Worker(Program):
    """The running program. Raises RuntimeError where it ends or cannot start."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env, "worker")
        started = self.hear()
        if started["result"]:
            raise RuntimeError(f"CUDA does not start: {started}")

    @property
    def pid(self) -> int:
        """Return the process's id."""
        return self._process.pid

    def take(self, size: int, name: str) -> Answer:
        """Take memory by a class."""
        return Answer(**self.ask(f"take {size} {name}"))

    def give(self, holding: int) -> Answer:
        """Give back what a `take` got."""
        return Answer(**self.ask(f"give {holding}"))

    def open(self, other: Self, holding: int, size: int, how: str) -> Answer:
        """Map another worker's memory; `how` as in sharing.h."""
        shared = other.ask(f"export {holding} {how}")
        token = shared.pop("token")
        return Answer(**shared) if shared["result"] else Answer(**self.ask(f"import {size} {how} {token}"))

    def become(self, program: str, argument: str) -> None:
        """Make the process go on as another program."""
        self.say(f"exec {program} {argument}")

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def free(self) -> int:
        """Return the bytes that cuMemGetInfo says are free."""
        return int(self.ask("info")["free"])


def native_env() -> dict[str, str]:
    """Return the environment without limits, with CUDA's cards in NVML's order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_") and name != "LD_PRELOAD"}
    return kept | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
