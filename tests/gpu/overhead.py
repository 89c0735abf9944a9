"""What a PyTorch process is charged beside what NVML says, outside the limiter, that it holds, step by step.

`python -m tests.gpu.overhead` needs an NVIDIA GPU, PyTorch and nvidia-ml-py. It prints a line for each step of
each of PyTorch's allocators and exits 1 where the two are apart by more than 2 % and 16 MiB.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import limiter
from vgpu.domain.formats import region

MIB: Final = 1 << 20
LIMIT: Final = "16GiB"
ALLOCATORS: Final = ("", "expandable_segments:True", "backend:cudaMallocAsync")
HEAD: Final = "     held  charged     seen    shown    apart"
QUIET_S: Final = 0.2  # measuring takes a two-hundredth of the time at most
ROOT: Final = Path(limiter.__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Step:
    """One quiet moment, in bytes."""

    name: str
    seen: int  # by the program: total less free, of cuMemGetInfo
    shown: int  # to the program by NVML, as used on the card
    charged: int  # in the region
    managed: int  # of it, what NVML does not count
    held: int  # by NVML's process list, outside

    @property
    def apart(self) -> int:
        """The largest difference between what is charged or shown and what is held."""
        held = self.held + self.managed
        return max(abs(figure - held) for figure in (self.seen, self.shown, self.charged))

    @property
    def is_good(self) -> bool:
        """Whether it is within 2 % or 16 MiB."""
        return self.apart <= max(16 * MIB, self.held // 50)

    def __str__(self) -> str:
        mib = [f"{figure / MIB:9.1f}" for figure in (self.held, self.charged, self.seen, self.shown, self.apart)]
        return f"{self.name:24}{''.join(mib)}{'' if self.is_good else '   APART'}"


def watch(allocator: str) -> Iterator[Step]:
    """Run the program under the limiter with that PYTORCH_CUDA_ALLOC_CONF; its steps. RuntimeError if it dies."""
    pynvml: Any = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    with limiter.environment(LIMIT, 100, "fixed", {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": allocator}) as env:
        folder = Path(env["VGPU_REGION_FILE"])
        command = [sys.executable, "-m", "tests.gpu.overhead", "program"]
        process = subprocess.Popen(
            command, env={**env, "PYTHONPATH": str(ROOT)}, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            for line in process.stdout:
                report = json.loads(line)
                held = {p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(card)}
                use = region.decode(folder.read_bytes()).processes[0]
                yield Step(
                    report["step"],
                    report["seen"],
                    report["shown"],
                    sum(size for _, size in use.used_bytes),
                    sum(size for _, size in use.managed_bytes),
                    held.get(process.pid, 0),
                )
                process.stdin.write("\n")
                process.stdin.flush()
        if process.returncode:
            raise RuntimeError(f"it ended with {process.returncode} after that")


def program() -> None:
    """Use PyTorch in many ways; after each, tell what is seen of the card's memory and wait for a line."""
    torch: Any = importlib.import_module("torch")  # in no environment of ours
    pynvml: Any = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    kept: list[Any] = []

    def conv() -> Any:
        return torch.nn.functional.conv2d(
            torch.randn(8, 64, 128, 128, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda")
        )

    def capture() -> Any:
        graph, place = torch.cuda.CUDAGraph(), torch.randn(1 << 20, device="cuda")
        with torch.cuda.graph(graph):
            kept.append((place * 2).sort())
        graph.replay()  # before that its tensors are nowhere, and cannot be freed
        return graph

    steps: dict[str, Callable[[], object]] = {
        "a tensor": lambda: torch.ones(1, device="cuda"),
        "1 GiB": lambda: torch.ones(256 * MIB, device="cuda"),
        "300 small ones": lambda: [torch.ones(5000, device="cuda") for _ in range(300)],
        "cuBLAS": lambda: torch.randn(2048, 2048, device="cuda") @ torch.randn(2048, 2048, device="cuda"),
        "cuDNN": conv,
        "sort": lambda: torch.randn(1 << 24, device="cuda").sort(),
        "cuFFT": lambda: torch.fft.fft(torch.randn(1 << 22, device="cuda")),
        "cuSOLVER": lambda: torch.linalg.svd(torch.randn(256, 256, device="cuda")),
        "64 streams": lambda: [torch.cuda.Stream() for _ in range(64)],
        "a graph": capture,
        "all but two freed": lambda: kept.__delitem__(slice(2, None)),
        "cache emptied": torch.cuda.empty_cache,
        "2 GiB more": lambda: torch.ones(512 * MIB, device="cuda"),
    }
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    for name, step in steps.items():
        kept.append(step())
        torch.cuda.synchronize()
        time.sleep(QUIET_S)
        free, total = torch.cuda.mem_get_info()
        shown = pynvml.nvmlDeviceGetMemoryInfo(card).used
        sys.stdout.write(json.dumps({"step": name, "seen": total - free, "shown": shown}) + "\n")
        sys.stdout.flush()
        sys.stdin.readline()


def tell(allocator: str) -> bool:
    """Print a table; whether all was well."""
    good = True
    sys.stdout.write(f"\n{allocator or 'native allocator'}, MiB\n{'':24}{HEAD}\n")
    try:
        for step in watch(allocator):
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()
            good = good and step.is_good
    except RuntimeError as death:
        sys.stdout.write(f"{death}\n")
        return False
    return good


def main() -> int:
    """Print a table for each allocator; 1 where a figure is apart, or the program dies."""
    good = [tell(allocator) for allocator in ALLOCATORS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    program() if "program" in sys.argv else sys.exit(main())
