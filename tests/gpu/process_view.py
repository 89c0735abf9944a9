"""Processes that are visible on a real card: one with limits and one without, each of which lists both.

`python -m tests.gpu.process_view` prints what it saw as JSON and exits 1 where a limited process sees another one. It
needs a card, NVIDIA's driver and Python.

NVML's lists are asked in the pid namespace of both. nvidia-smi does not ask by them, but by a table of NVML's own
functions that has no names (580.159), so it sees what the driver shows in its pid namespace: it is asked in one with
the limited process alone, as in a container, where that may be made.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import limiter

MIB = 1 << 20
ROOT = Path(limiter.__file__).parents[1]
HELD_MIB = {"stranger": 512, "ours": 256}

_HOLD = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
print(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1]) << 20)), flush=True)
sys.stdin.read()
"""

_LIST = """
import ctypes, json
nvml = ctypes.CDLL("libnvidia-ml.so.1")
card, count = ctypes.c_void_p(), ctypes.c_uint(1000)
class Info(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
infos = (Info * 1000)()
nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
result = nvml.nvmlDeviceGetComputeRunningProcesses_v3(card, ctypes.byref(count), infos)
print(json.dumps([result, [[info.pid, info.used] for info in infos[: count.value]]]))
"""

_CONTAINED = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
_SMI = ("nvidia-smi", "--id=0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")


def hold(mib: int, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """A process that holds memory of the card until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(mib)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    if process.stdout.readline() != "0\n":
        raise SystemExit(f"{mib} MiB cannot be allocated")
    return process


def listed(env: Mapping[str, str]) -> Any:
    """Result of NVML's list, and pid and bytes of each process."""
    return json.loads(subprocess.run([sys.executable, "-c", _LIST], env=env, check=True, capture_output=True).stdout)


def smi(env: Mapping[str, str], *command: str) -> list[str]:
    """Lines of nvidia-smi."""
    return subprocess.run(command or _SMI, env=env, check=True, capture_output=True, text=True).stdout.splitlines()


def looked_up(env: Mapping[str, str]) -> list[str]:
    """The NVML functions about processes that nvidia-smi looks up, by the log of the dynamic linker."""
    done = subprocess.run(
        _SMI, env={**env, "LD_DEBUG": "symbols"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    names = {name.decode() for name in re.findall(rb"symbol=(nvml\w+)", done.stderr)}
    return sorted(name for name in names if re.search("Process|Table|Accounting|Init", name))


def look(env: Mapping[str, str], limited: Mapping[str, str]) -> dict[str, Any]:
    """The lists that both processes see, and the pids of both."""
    with hold(HELD_MIB["stranger"], env) as stranger, hold(HELD_MIB["ours"], limited) as ours:
        seen = {
            "pids": {"stranger": stranger.pid, "ours": ours.pid},
            "native": listed(env),
            "limited": listed(limited),
            "nvidia-smi native": smi(env),
            "nvidia-smi looks up": looked_up(env),
            "contained": contained(limited),
        }
        for process in (stranger, ours):
            assert process.stdin
            process.stdin.close()
    return seen


def contained(limited: Mapping[str, str]) -> dict[str, Any] | None:
    """The lists in a new pid namespace; None if it cannot be made."""
    if subprocess.run([*_CONTAINED, "true"], check=False, capture_output=True).returncode:
        return None
    command = [*_CONTAINED, sys.executable, "-m", "tests.gpu.process_view", "contained"]
    env = {**limited, "PYTHONPATH": str(ROOT)}
    seen: dict[str, Any] = json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)
    return seen


def look_contained(limited: Mapping[str, str]) -> dict[str, Any]:
    """The same from inside."""
    with hold(HELD_MIB["ours"], limited) as ours:
        seen = {
            "ours": ours.pid,
            "limited": listed(limited),
            "nvidia-smi": smi(limited),
            "nvidia-smi table": smi(limited, "nvidia-smi", "--id=0")[-12:],
        }
        assert ours.stdin
        ours.stdin.close()
    return seen


def wrong(seen: dict[str, Any]) -> list[str]:
    """The faults in the lists of the limited process."""
    result, processes = seen["limited"]
    pids = {pid for pid, _ in processes}
    lists_by_own_pid = seen["pids"]["ours"] in {pid for pid, _ in seen["native"][1]}
    expected = {seen["pids"]["ours"]} if lists_by_own_pid else set()
    found = [] if result == 0 and pids == expected else [f"listed are {pids}, not {expected}"]
    found += [f"{used} bytes" for _, used in processes if used < HELD_MIB["ours"] * MIB]
    return found + (wrong_contained(seen["contained"]) if seen["contained"] else [])


def wrong_contained(seen: dict[str, Any]) -> list[str]:
    """Likewise, in a pid namespace of its own."""
    _, processes = seen["limited"]
    shown = {int(line.split(",")[0]) for line in seen["nvidia-smi"] if line[:1].isdigit()}
    found = [f"nvidia-smi shows {shown}"] if shown - {seen["ours"]} else []
    return found + ([f"listed are {processes}"] if {pid for pid, _ in processes} - {seen["ours"]} else [])


def main() -> int:
    """Look, print and return the exit status."""
    env = dict(os.environ)
    with limiter.environment("4GiB", 100, "fixed", env) as limited:
        seen = look(env, limited)
    seen["wrong"] = wrong(seen)
    sys.stdout.write(json.dumps(seen, indent=1) + "\n")
    return 1 if seen["wrong"] else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["contained"]:
        json.dump(look_contained(dict(os.environ)), sys.stdout)
    else:
        raise SystemExit(main())
