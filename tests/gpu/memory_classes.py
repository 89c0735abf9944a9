"""Arrays, graphs, kernels and shared memory: what is charged beside what the card itself says is taken, step by step.

`python -m tests.gpu.memory_classes` needs an NVIDIA GPU that nobody else uses meanwhile. It prints a line for each
step and exits 1 where an answer is not the expected one, or where what is charged and what the card says are apart by
more than 2 % and 16 MiB. On the simulated driver it runs too.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import limiter
from vgpu.domain.formats import region

MIB: Final = 1 << 20
LIMIT: Final = "8GiB"
OUT_OF_MEMORY: Final = 2
QUIET_S: Final = 0.15  # descriptors are looked at every 100 ms
ROOT: Final = Path(limiter.__file__).parents[1]

# Each is a program's expression (`program` has the functions) and its value, where that matters.
STEPS: Final[tuple[tuple[str, object], ...]] = (
    ("arrays: array(1024)", 0),
    ("arrays: array(7000)", OUT_OF_MEMORY),
    ("arrays: array(300, levels=8)", 0),
    ("arrays: [array(1) for _ in range(40)]", [0] * 40),
    ("arrays: array(300, flags=arrays.LAYERED)", 0),
    ("arrays: array(4000, flags=arrays.DEFERRED)", 0),
    ("arrays: array(4000, flags=arrays.SPARSE)", 0),
    ("arrays: drop()", None),
    ("graphs: graph(600, 500)", 0),
    ("graphs: graph(1000)", 0),
    ("graphs: graph(7800)", OUT_OF_MEMORY),
    ("graphs: trim()", 0),
    ("graphs: again()", 0),
    ("graphs: graph(2000, freed=False)", 0),
    ("graphs: graph(2000)", 0),
    ("graphs: graph(6000)", OUT_OF_MEMORY),
    ("graphs: free_left()", 0),
    ("graphs: trim()", 0),
    ("graphs: graph(3000)", 0),
    ("graphs: trim()", 0),
    ("local: launch(load(512))", 0),
    ("local: launch(load(65536))", OUT_OF_MEMORY),
    ("local: launch(load(4096))", 0),
    ("local: instantiated(65536)", OUT_OF_MEMORY),
    ("local: instantiated(8192)", 0),
    ("local: changed(load(10240))", 0),
    ("local: stack(1024)", 0),
    ("local: launch(load(9000))", 0),
    ("local: alloc(7600)", OUT_OF_MEMORY),
    ("own: physical_memory(500, export=True)", 0),
    ("own: imported()", 0),
    ("own: released()", 0),
    ("own: imported_is_mapped()", 0),
    ("own: closed()", None),
    ("own: ended()", 0),
    ("own: physical_memory(500, export=True)", 0),
    ("own: released()", 0),
    ("own: closed()", None),
    ("own: alloc(6000)", OUT_OF_MEMORY),
    ("own: physical_memory(500, export=True)", 0),
    ("own: outside()", 0),
    ("own: released()", 0),
    ("own: outside_ended()", 0),
    ("own: number_comes_again()", 0),
    ("own: released()", 0),
    ("own: closed()", None),
    ("own: physical_memory(64, usage=1)", 0),
    ("own: array_of_backing()", 0),
    ("own: released()", 0),
    ("own: drop()", None),
    ("capture: captured()", 0),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One quiet moment, in bytes over what there was with the context alone."""

    name: str
    value: object
    expected: object
    taken: int  # of the card
    charged: int  # in the region
    hidden: int  # of it, what NVML counts for nobody
    listed: int  # NVML's process list

    @property
    def is_good(self) -> bool:
        """Whether it is as expected, and within 2 % or 16 MiB."""
        return self.value == self.expected and abs(self.charged - self.taken) <= max(16 * MIB, self.taken // 50)

    def __str__(self) -> str:
        mib = [f"{figure / MIB:9.1f}" for figure in (self.taken, self.charged, self.hidden, self.listed)]
        return f"{self.name:48}{''.join(mib)}  {'' if self.is_good else f'WRONG: {self.value}'}"


class Nvml:
    """The first card's own figures, outside the limiter."""

    class Process(ctypes.Structure):
        _fields_ = (("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2))

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()
        self.card = ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.card))

    def used(self) -> int:
        """Bytes of the card."""
        figures = (ctypes.c_ulonglong * 3)()
        self.library.nvmlDeviceGetMemoryInfo(self.card, figures)
        return int(figures[2])

    def held(self, pid: int) -> int:
        """Bytes of a process."""
        count, listed = ctypes.c_uint(64), (self.Process * 64)()
        self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.card, ctypes.byref(count), listed)
        return sum(process.bytes for process in listed[: count.value] if process.pid == pid)


def watch() -> Iterator[Step]:
    """Run the program under the limiter; its steps."""
    nvml, base = Nvml(), (0, 0, 0, 0)
    with limiter.environment(LIMIT, 100, "fixed", dict(os.environ)) as env:
        command = [sys.executable, "-m", "tests.gpu.memory_classes", "program"]
        process = subprocess.Popen(
            command, env={**env, "PYTHONPATH": str(ROOT)}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            for name, expected in (("start()", 0), *STEPS):
                process.stdin.write(f"{name.rpartition(': ')[2]}\n")
                process.stdin.flush()
                value = json.loads(process.stdout.readline())
                use = region.decode(Path(env["VGPU_REGION_FILE"]).read_bytes()).processes[0]
                charged, hidden = (sum(size for _, size in of) for of in (use.used_bytes, use.managed_bytes))
                now = (nvml.used(), charged, hidden, nvml.held(process.pid))
                base = now if name == "start()" else base
                yield Step(name, value, expected, *(figure - before for figure, before in zip(now, base, strict=True)))
            process.stdin.close()


def program() -> None:
    """Evaluate each line over the functions of `driver_calls`, and say its value when all is quiet."""
    from tests.gpu import driver_calls  # noqa: PLC0415 - opens the driver

    names: dict[str, Any] = vars(driver_calls)
    for line in sys.stdin:
        value = eval(line, names)  # the only writer is `watch`
        driver_calls.quiet()
        time.sleep(QUIET_S)
        driver_calls.quiet()
        sys.stdout.write(f"{json.dumps(value)}\n")
        sys.stdout.flush()


def main() -> int:
    """Print the table; 1 where a line is wrong."""
    good = True
    sys.stdout.write(f"{'MiB':48}    taken  charged   hidden   listed\n")
    for step in watch():
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
        good = good and step.is_good
    return 0 if good else 1


if __name__ == "__main__":
    program() if "program" in sys.argv else sys.exit(main())
