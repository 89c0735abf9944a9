"""A process of `worker.c`, natively or under a limit, and the container it stands for."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.limiter import build
from limiter import launch
from vgpu import region
from vgpu.region import Region

MIB = 1 << 20
OUT_OF_MEMORY = 2
MISSING = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command did: CUresult, 0 for success and MISSING where the driver lacks it; the function that failed."""

    result: int
    function: str
    id: int = -1

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


class Worker:
    """The running program. Raises RuntimeError where it ends or cannot start."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(build.program("worker"))], env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started = self._answer()
        if started["result"]:
            raise RuntimeError(f"CUDA does not start: {started}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

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

    def free(self) -> int:
        """Return the bytes that cuMemGetInfo says are free."""
        return int(self.ask("info")["free"])

    def ask(self, line: str) -> dict[str, Any]:
        """Return the answer to one line of `worker.c`'s language."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def native_env() -> dict[str, str]:
    """Return the environment without limits, with CUDA's cards in NVML's order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VGPU_") and name != "LD_PRELOAD"}
    return kept | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
