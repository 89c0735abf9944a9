"""On a real GPU: a PyTorch job whose limit is changed while it runs, 2 -> 4 -> 1 GiB (and back to what it holds).

    python3 -m tests.gpu.resize

Prints what the job could hold after each change; ends with 1 where that is not as it must be.
"""

import importlib
import json
import subprocess
import sys
from typing import Any

from tests.gpu.container import Container

MIB = 1 << 20
BLOCK = 64 * MIB
GIB = 1024 * MIB
CONTEXT = 640 * MIB  # at most, with what the first kernels load


class Job:
    """The other end of `serve`."""

    def __init__(self, env: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.gpu.resize", "serve"]
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, verb: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{verb}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        self._process.communicate()


def serve() -> None:
    """Fill with blocks, give half of them back, or compute, as standard input says; says what is held then."""
    torch: Any = importlib.import_module("torch")
    blocks: list[Any] = []
    for line in sys.stdin:
        if line.strip() == "fill":
            fill(torch, blocks)
        elif line.strip() == "halve":
            del blocks[len(blocks) // 2 :]
            torch.cuda.empty_cache()
        right = all(int(block[-1]) == number % 200 for number, block in enumerate(blocks))
        free, total = torch.cuda.mem_get_info()
        answer = {"held": len(blocks) * BLOCK, "right": right, "free": free, "total": total}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def fill(torch: Any, blocks: list[Any]) -> None:
    while True:
        try:
            blocks.append(torch.full((BLOCK,), len(blocks) % 200, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            return


def judge(job: Job, container: Container) -> list[str]:
    """Makes the changes one after another; returns the faults."""
    wrong = []

    def check(name: str, seen: dict[str, Any], holds: bool) -> None:
        sys.stdout.write(f"{name}: {seen} {'as it must be' if holds else 'WRONG'}\n")
        if not holds or not seen["right"]:
            wrong.append(name)

    def is_full(seen: dict[str, Any], limit: int) -> bool:
        is_filled = limit - CONTEXT - BLOCK <= seen["held"] <= limit and seen["free"] < BLOCK
        return bool(is_filled and seen["total"] == limit)

    seen = job("fill")
    check("2 GiB", seen, is_full(seen, 2 * GIB))
    container.limit(4 * GIB)
    seen = job("fill")
    check("raised to 4 GiB", seen, is_full(seen, 4 * GIB))
    container.limit(GIB)
    before, seen = seen, job("fill")
    check("lowered to 1 GiB", seen, seen["held"] == before["held"] and seen["free"] == 0 and seen["total"] == GIB)
    seen = job("halve")
    check("half given back", seen, seen["free"] == 0)
    job("halve"), job("halve")
    seen = job("fill")
    check("filled again", seen, is_full(seen, GIB))
    return wrong


def main() -> int:
    """Run the job under a limit of 2 GiB and change it."""
    with Container("2048") as container:
        job = Job(container.env)
        wrong = judge(job, container)
        job.end()
    return 1 if wrong else 0


if __name__ == "__main__":
    serve() if "serve" in sys.argv else sys.exit(main())
