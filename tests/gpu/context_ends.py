"""What stays on a real card after the last context of a process, what is charged, and what ends of contexts cost.

`python -m tests.gpu.context_ends` prints what it saw as JSON and exits 1 where memory on the card is not charged, where
a second process of the container gets more than is left, or where releases of spare references take long beside a busy
neighbour. It needs a card, NVIDIA's driver and Python.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from simgpu.session import ProbeSession
from tests.gpu.container import Container, native_env

LIMIT_MIB = 3072
TAKEN_MIB = 1024
MEMORY_OF_THE_DEVICE = ("chunk", "pool", "default pool", "graph")
KINDS = ("plain", *MEMORY_OF_THE_DEVICE)
SPARE_P99_MS = 0.05
SLACK_MIB = 8  # NVML counts a little that no call takes


@contextlib.contextmanager
def _worker(env: Mapping[str, str]) -> Iterator[ProbeSession]:
    """A process of context_worker.py, with a context."""
    command = [sys.executable, "-m", "tests.gpu.context_worker"]
    worker = ProbeSession(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**env})
    )
    try:
        if result := worker("start()"):
            raise RuntimeError(f"no context: {result}")
        yield worker
    finally:
        worker.kill()


def _charged_mib(container: Container) -> int:
    return sum(card.used_bytes for card in container.region().cards) >> 20


def _after_last_context(kind: str) -> dict[str, Any]:
    """What is charged before and after the release, after the next retain, and what a second process gets."""
    with Container(f"{LIMIT_MIB}MiB") as container, _worker(container.env) as worker:
        context = _charged_mib(container)
        seen: dict[str, Any] = {"kind": kind, "context": context, "taken": worker(f"take({kind!r}, {TAKEN_MIB})")}
        seen["released"] = worker("release()")
        seen["charged"] = _charged_mib(container)
        with _worker(container.env) as other:
            seen["second process"] = other("most(32)")
        seen["retained"] = worker("retain()")
        seen["charged again"] = _charged_mib(container)
    kept = TAKEN_MIB if kind in MEMORY_OF_THE_DEVICE else 0
    seen["wrong"] = [
        name
        for name, is_right in {
            "result": seen["taken"] == seen["released"] == seen["retained"] == 0,
            "charged": abs(seen["charged"] - kept) <= SLACK_MIB,
            "second process": seen["second process"] <= LIMIT_MIB - kept - context + SLACK_MIB,
            "charged again": abs(seen["charged again"] - kept - context) <= SLACK_MIB,
        }.items()
        if not is_right
    ]
    return seen


def _spare_references() -> dict[str, Any]:
    """ms of releases of spare references: p50, p99, longest; natively, and with the limiter beside a busy neighbour."""
    with _worker(native_env()) as native:
        seen: dict[str, Any] = {"native": native("spares(2000)")}
    with (
        Container("2GiB", 50) as first,
        Container("2GiB", 50) as second,
        _worker(first.env) as busy,
        _worker(second.env) as own,
    ):
        busy.tell("burn(6)")
        time.sleep(1)
        seen["limited"] = own("spares(2000)")
        busy.answer()
    seen["wrong"] = ["p99"] if seen["limited"][1] > SPARE_P99_MS else []
    return seen


def main() -> None:
    """Print the findings as JSON."""
    rows = [*(_after_last_context(kind) for kind in KINDS), _spare_references()]
    sys.stdout.write(json.dumps({"rows": rows, "wrong": [row for row in rows if row["wrong"]]}, indent=1))
    sys.exit(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    main()
