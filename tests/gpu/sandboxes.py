"""On a real GPU: a container of 2 GiB, and namespaces made inside it: users, mounts, pids, of the dynamic linker.

    python3 -m tests.gpu.sandboxes [CASE ...]

Prints a line for each case, with what the same program gets natively; the exit status is 1 where one case leaks or is
refused falsely. Needs `limiter/libvgpushare.so`, `build/simgpu/gpuprobe` and the right to make namespaces: as root, or
user namespaces; a case whose namespaces this machine refuses is reported as not run, and the exit status is 2.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import limiter
from limiter.installation import LIBRARY
from tests.gpu.container import Container, native_env

ROOT = Path(limiter.__file__).parents[1]
PROBE = ROOT / "build/simgpu/gpuprobe"
MIB = 1 << 20
LIMIT_MIB: Final = 2048
SIZES: Final = ("1024", "2048")  # MiB; the limit has room for the first
TIMEOUT_S = 60
OUT_OF_MEMORY = 2

PLACE = f"/usr/local/vgpu/{LIBRARY}"
# A container: the limiter's files where the device plugin mounts them, and an /etc with an ld.so.preload.
CONTAINER = f"""
mount -t tmpfs none /run
mkdir /run/vgpu /run/etc
mount --bind "$FOLDER" /run/vgpu
cp -a /etc/ld.so.cache /etc/ld.so.conf* /etc/passwd /run/etc
echo {PLACE} > /run/etc/ld.so.preload
mount --bind /run/etc /etc
mkdir -p /usr/local/vgpu 2>/dev/null || {{ mount -t tmpfs none /usr/local; mkdir /usr/local/vgpu; }}
mount -t tmpfs none /usr/local/vgpu
touch {PLACE}
mount --bind "$LIBRARY" {PLACE}
mount -o remount,bind,ro {PLACE}
"""
USER = "unshare --user --map-root-user --mount"
PIDS = "unshare --user --map-root-user --pid --fork --kill-child --mount"
ALLOC = f'exec "$PROBE" alloc {" ".join(SIZES)}'
DLMOPEN = f'exec "$PROBE" alloc --dlmopen {" ".join(SIZES)}'


@dataclass(frozen=True, slots=True)
class Case:
    """A shell line inside the container.

    Attributes:
        line: prints a JSON object with `result` for each allocation, of `SIZES`.
        wanted: the results under the limit.
        native: the line without the limiter's files, where it is another.
        may_fail: drivers may refuse to start there, or crash; then the limited program does what the native one does.
    """

    line: str
    wanted: tuple[int, ...] = (0, OUT_OF_MEMORY)
    native: str = ""
    may_fail: bool = False


def _inside(namespaces: str, hide: str = ":", line: str = ALLOC) -> str:
    return f"exec {namespaces} /bin/sh -ec '{hide}; {line}'"


def _hiding(hide: str) -> Case:
    refused = (OUT_OF_MEMORY,)  # the context already
    return Case(_inside(USER, hide), refused, _inside(USER))


CASES: Final[Mapping[str, Case]] = {
    "no namespace": Case(ALLOC),
    "user and mounts": Case(_inside(USER)),
    "pids, own /proc": Case(_inside(f"{PIDS} --mount-proc")),
    "pids, the outer /proc": Case(_inside(PIDS), may_fail=True),
    "pids, no /proc": Case(_inside(PIDS, "mount -t tmpfs none /proc"), may_fail=True),
    "pids in pids": Case(_inside(PIDS, line=f'exec {PIDS} --mount-proc "$PROBE" alloc {" ".join(SIZES)}')),
    "sandbox hides /run": _hiding("mount -t tmpfs none /run"),
    "sandbox hides /run/vgpu": _hiding("mount -t tmpfs none /run/vgpu"),
    "sandbox hides the limits": _hiding("mount --bind /dev/null /run/vgpu/limits"),
    "sandbox hides the region": _hiding("mount --bind /dev/null /run/vgpu/region"),
    "dlmopen": Case(DLMOPEN, may_fail=True),
    "dlmopen in pids": Case(_inside(f"{PIDS} --mount-proc", line=DLMOPEN), may_fail=True),
}


def outer() -> tuple[str, ...]:
    """Return the command that makes the container's mounts: in a user namespace where this is not root."""
    return ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")


def results(line: str, env: Mapping[str, str], mounts: str = "") -> tuple[int, ...]:
    """Return the results of a line, then minus the number of the signal that ended it, if one did.

    Raises ValueError with the end of its errors where there are none.
    """
    command = [*outer(), "/bin/sh", "-ec", mounts + line]
    done = subprocess.run(
        command, env={**env, "PROBE": str(PROBE)}, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
    )
    found = tuple(int(json.loads(answer)["result"]) for answer in done.stdout.splitlines())
    if done.returncode < 0:
        found = (*found, done.returncode)
    if not found:
        raise ValueError(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")
    return found


def judge(case: Case) -> tuple[str, int]:
    """Return the words for a case, and the exit status that it calls for."""
    with Container(f"{LIMIT_MIB}MiB") as container:
        files = {"FOLDER": str(container.folder), "LIBRARY": container.env["LD_PRELOAD"]}
        bare = {name: value for name, value in native_env().items() if name != "LD_PRELOAD"}
        try:
            native = results(case.native or case.line, bare)
            ours = results(case.line, bare | files, CONTAINER)
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            return f"not run: {error}", 2
    wanted = native if case.may_fail and any(native) else case.wanted
    is_right = ours == wanted
    return f"native {native}, limited {ours}{'' if is_right else f', wanted {wanted}'}", 0 if is_right else 1


def main(names: list[str]) -> int:
    """Judge the cases, all by default."""
    worst = 0
    for name in names or CASES:
        words, status = judge(CASES[name])
        worst = max(worst, status) if 1 not in (worst, status) else 1
        sys.stdout.write(f"{name}: {words}\n")
        sys.stdout.flush()
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
