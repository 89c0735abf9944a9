"""Spilling on a real card that another process has filled: 4 GiB written and read back, and what is refused without it.

`python -m tests.gpu.spill` prints what it saw as JSON and exits 1 where the limiter did not do as it says. It
needs a card, NVIDIA's driver and Python. Beside it, natively, managed memory under each advice: why `spill.c` gives the
one it gives.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import limiter

ASKED_MIB = 4096
OUT_OF_MEMORY = 2

# A context is made first, for a full card has no room for one. Then each line of input is a task.
_WORKER = """
import ctypes, json, sys, time
cuda, kind, mib = ctypes.CDLL("libcuda.so.1"), sys.argv[1], int(sys.argv[2])
context, pointer, size = ctypes.c_void_p(), ctypes.c_uint64(), mib << 20
words = (ctypes.c_uint32 * (1 << 18))()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)

def allocate():
    if kind == "plain":
        return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    result = cuda.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(size), 1)
    where = {"device": 0, "host": -1}.get(kind)
    if result == 0 and where is not None:
        result = cuda.cuMemAdvise(pointer, ctypes.c_size_t(size), 3, where)
        result = result or cuda.cuMemAdvise(pointer, ctypes.c_size_t(size), 5, 0)
    return result

def write():
    result = cuda.cuMemsetD32_v2(pointer, 0x5AFE, ctypes.c_size_t(size // 4))
    return result or cuda.cuCtxSynchronize()

def read():
    for offset in range(0, size, 1 << 20):
        result = cuda.cuMemcpyDtoH_v2(words, ctypes.c_uint64(pointer.value + offset), ctypes.c_size_t(1 << 20))
        if result or words[0] != 0x5AFE or words[-1] != 0x5AFE:
            return result or -1
    return 0

def timed(step):
    begun = time.monotonic()
    return step(), round(time.monotonic() - begun, 3)

print("ready", flush=True)
for line in sys.stdin:
    seen = {"allocate": allocate()}
    if seen["allocate"] == 0:
        seen |= {name: timed(step) for name, step in (("write", write), ("again", write), ("read", read))}
        seen["free"] = cuda.cuMemFree_v2(pointer)
    print(json.dumps(seen), flush=True)
"""

_FILLER = """
import ctypes, sys
cuda, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
held = 0
for mib in (1024, 64, 2):
    while cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)) == 0:
        held += mib
print(held, flush=True)
sys.stdin.read()
"""


class Program:
    """A child that answers each line by one."""

    def __init__(self, env: Mapping[str, str], code: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.first = self.line()

    def line(self) -> str:
        """What it says next."""
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def answer(self) -> Any:
        """What it says of one task."""
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        output = self.line()
        return json.loads(output) if output else f"died: {self.process.wait()}"

    def end(self) -> None:
        """Closes its input and waits."""
        self.process.communicate(timeout=60)


def look() -> dict[str, Any]:
    """The results of each worker on the full card."""
    env = dict(os.environ)
    with ExitStack() as stack:
        limited = {
            policy: stack.enter_context(limiter.environment("8GiB", 100, "fixed", env, memory_policy=policy))
            for policy in ("refuse", "spill")
        }
        workers = {f"limited, {policy}": (limits, "plain") for policy, limits in limited.items()}
        workers |= {f"native, managed, {advice}": (env, advice) for advice in ("none", "host", "device")}
        programs = {name: Program(where, _WORKER, kind, str(ASKED_MIB)) for name, (where, kind) in workers.items()}
        filler = Program(env, _FILLER)
        seen = {"held by another, MiB": filler.first} | {name: worker.answer() for name, worker in programs.items()}
        for program in (*programs.values(), filler):
            program.end()
    return seen


def wrong(seen: Mapping[str, Any]) -> list[str]:
    """The faults in the results."""
    refused, spilled = seen["limited, refuse"], seen["limited, spill"]
    found = [] if refused == {"allocate": OUT_OF_MEMORY} else [f"refuse: {refused}"]
    good = isinstance(spilled, dict) and not any(
        step[0] if isinstance(step, list) else step for step in spilled.values()
    )
    return found if good else [*found, f"spill: {spilled}"]


def main() -> int:
    """Look, print and return the exit status."""
    seen = look()
    seen["wrong"] = wrong(seen)
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")
    return 1 if seen["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
