"""On one real GPU or several: each card has its own limit, in whatever order and by whatever name CUDA sees the cards.

    python3 -m tests.gpu.visible_cards

Prints a line for each choice of cards; ends with 1 where a limit is not on its own card.
"""

import ctypes
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pynvml

from limiter import launch

MIB = 1 << 20
STEP = 128 * MIB
FIRST_MIB = 1536
MORE_MIB = 1024  # than the card before
CONTEXT = 640 * MIB
TIMEOUT_S = 60


def look() -> list[tuple[str, int, int, int]]:
    """UUID, total by CUDA and by NVML, and bytes that could be allocated of each device, in CUDA's order."""
    cuda = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    pynvml.nvmlInit()
    cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count))
    return [look_at(cuda, device) for device in range(count.value)]


def shown(uuid: str) -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(uuid)).total)


def look_at(cuda: ctypes.CDLL, device: int) -> tuple[str, int, int, int]:
    raw, total, context, pointer = (ctypes.c_ubyte * 16)(), ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuDeviceGetUuid_v2(raw, device), cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context)
    taken = 0
    while cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(STEP)) == 0:
        taken += STEP
    text = bytes(raw).hex()
    uuid = "GPU-" + "-".join(text[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    return uuid, total.value, shown(uuid), taken


def choices(uuids: list[str]) -> Iterator[dict[str, str]]:
    """Environments that show the cards in every order, by index, by UUID and by the UUID's beginning."""
    for order in ("FASTEST_FIRST", "PCI_BUS_ID"):
        for count in range(1, len(uuids) + 1):
            for places in itertools.permutations(range(len(uuids)), count):
                for names in (map(str, places), (uuids[p] for p in places), (uuids[p][:12] for p in places)):
                    yield {"CUDA_DEVICE_ORDER": order, "CUDA_VISIBLE_DEVICES": ",".join(names)}
        yield {"CUDA_DEVICE_ORDER": order}


def judge(env: dict[str, str], limits: dict[str, int]) -> str:
    """The faults under this choice of cards."""
    command = [sys.executable, "-m", "tests.gpu.visible_cards", "look"]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"not done after {TIMEOUT_S} s"
    if done.returncode:
        return done.stderr.strip()[-200:] or f"exit code {done.returncode}"
    seen = json.loads(done.stdout)
    wrong = [
        f"{uuid} has {total // MIB} MiB, by NVML {by_nvml // MIB}, and gave {taken // MIB}; its limit is"
        f" {limits[uuid] // MIB}"
        for uuid, total, by_nvml, taken in seen
        if {total, by_nvml} != {limits[uuid]} or not limits[uuid] - CONTEXT - STEP <= taken <= limits[uuid]
    ]
    return "; ".join(wrong) or ("" if len(seen) == expected(env, len(limits)) else f"{len(seen)} cards are seen")


def expected(env: dict[str, str], cards: int) -> int:
    """How many cards that choice shows."""
    chosen = env.get("CUDA_VISIBLE_DEVICES")
    return len(chosen.split(",")) if chosen else cards


def main() -> int:
    """Give each card a limit of its own, and look at them under every choice."""
    pynvml.nvmlInit()
    cards = [pynvml.nvmlDeviceGetHandleByIndex(place) for place in range(pynvml.nvmlDeviceGetCount())]
    uuids = [str(pynvml.nvmlDeviceGetUUID(card)) for card in cards]
    limits = {uuid: (FIRST_MIB + place * MORE_MIB) * MIB for place, uuid in enumerate(uuids)}
    memory = ",".join(f"{uuid}={size // MIB}" for uuid, size in limits.items())
    wrong = 0
    sys.stdout.write(f"{len(uuids)} cards, limits {memory}\n")
    for choice in choices(uuids):
        folder = launch.write_files(launch.parse(memory, 100, "fixed"))
        fault = judge({**os.environ, **launch.variables(folder, {}), **choice, "VGPU_LOG": "off"}, limits)
        shutil.rmtree(folder)
        wrong += bool(fault)
        sys.stdout.write(f"{choice}: {fault or 'each limit on its own card'}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    if "look" in sys.argv:
        sys.stdout.write(json.dumps(look()))
    else:
        sys.exit(main())
