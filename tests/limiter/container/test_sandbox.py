"""A sandbox inside a container: a user namespace that hides files of the limiter, as bubblewrap makes it.

What stays of the limiter's files refuses every allocation, for limits that cannot be read may not be exceeded.
"""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from limiter.installation import LIBRARY
from simgpu.build import ROOT
from tests.limiter.conftest import Container

PLACE = f"/usr/local/vgpu/{LIBRARY}"
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-ec")
# A container: its files where deviceplugin/responses.py mounts them, and an /etc with an ld.so.preload.
MOUNT = f"""
mount -t tmpfs none /run
mkdir /run/vgpu /run/etc
mount --bind "$FOLDER" /run/vgpu
cp /etc/ld.so.cache /etc/passwd /run/etc
echo {PLACE} > /run/etc/ld.so.preload
mount --bind /run/etc /etc
mount -t tmpfs none /usr/local
mkdir /usr/local/vgpu
touch {PLACE}
mount --bind "$LIBRARY" {PLACE}
mount -o remount,bind,ro {PLACE}
"""
SANDBOX = "exec unshare --user --map-root-user --mount /bin/sh -ec '{hide}; exec \"$PROBE\" alloc 1 40 40'"
HIDING = """
import ctypes, json
libc, cuda = ctypes.CDLL(None), ctypes.CDLL("libcuda.so.1")
for path in (b"/run", b"/usr/local"):
    assert libc.mount(b"none", path, b"tmpfs", 0, None) == 0
cuda.cuInit(0)
print(json.dumps({"result": cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)}))
"""
OTHER_LIMITS = {"VGPU_MEMORY_LIMIT": "1TiB", "VGPU_LIMITS_FILE": "/nowhere/limits", "VGPU_REGION_FILE": "/nowhere"}
DENIED = "every allocation of GPU memory will be refused"

Run = Callable[..., tuple[list[int], str]]


@pytest.fixture
def run(container: Container) -> Run:
    """Runs a shell line in the container; returns the results of its probes, and what was written on standard error."""
    if subprocess.run([*UNSHARE, "mount -t tmpfs none /run"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")

    def inside(line: str, **more: str) -> tuple[list[int], str]:
        files = {"FOLDER": str(container.folder), "LIBRARY": container.env["LD_PRELOAD"]}
        env = container.world.environment(**files, PROBE=str(container.world.bin / "gpuprobe"), **more)
        command = [*UNSHARE, MOUNT + line]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)
        return [json.loads(line)["result"] for line in done.stdout.splitlines()], done.stderr

    return inside


def test_the_container_is_limited_without_a_sandbox(run: Run) -> None:
    assert run('exec "$PROBE" alloc 1 40 40')[0] == [0, 0, 2]


def test_a_sandbox_that_shows_everything_has_the_limits(run: Run) -> None:
    assert run(SANDBOX.format(hide=":"))[0] == [0, 0, 2]


@pytest.mark.parametrize(
    "hide",
    [
        "mount -t tmpfs none /run",
        "mount -t tmpfs none /run/vgpu",
        "mount -t tmpfs none /run; mount -t tmpfs none /proc",
        "mount -t tmpfs none /run; mkdir /run/vgpu; touch /run/vgpu/limits",
        "mount --bind /dev/null /run/vgpu/limits",
        "mount --bind /etc/passwd /run/vgpu/limits",
        "mount --bind /usr/bin /run/vgpu",
    ],
)
@pytest.mark.parametrize("env", [{}, OTHER_LIMITS], ids=["", "environment"])
def test_hidden_limits_refuse(run: Run, hide: str, env: dict[str, str]) -> None:
    results, said = run(SANDBOX.format(hide=hide), **env)
    assert results == [2]  # the context is refused already
    assert f"/run/vgpu/limits cannot be read: {DENIED}: a sandbox inside this container must show /run/vgpu" in said


@pytest.mark.parametrize(
    "hide",
    ["mount --bind /dev/null /run/vgpu/region", "mount --bind /run/vgpu /run/vgpu; mount -o remount,bind,ro /run/vgpu"],
)
def test_a_region_that_cannot_be_written_refuses(run: Run, hide: str) -> None:
    results, said = run(SANDBOX.format(hide=hide))
    assert results == [2]
    assert f"/run/vgpu/region cannot be used as the region: {DENIED}" in said


@pytest.mark.parametrize("kind", ["alloc", "async", "managed", "vmm", "array", "context", "module"])
def test_hidden_limits_refuse_every_kind(run: Run, kind: str) -> None:
    probe = f'exec "$PROBE" alloc --kind {kind} 1'
    hidden = f"exec unshare --user --map-root-user --mount /bin/sh -ec 'mount -t tmpfs none /run; {probe}'"
    assert run(hidden)[0] == [2]


def test_a_process_that_hides_everything_itself_is_refused(run: Run) -> None:
    """Its start has seen the container; the limiter reads its settings only at the first call of CUDA."""
    line = f"exec {sys.executable} -S -c '{HIDING}'"
    results, said = run(line, **OTHER_LIMITS)
    assert results == [2]
    assert DENIED in said


def test_vgpu_run_does_not_start_under_other_limits_there(run: Run) -> None:
    """It would run a second copy of the library, under limits of the program's own choice."""
    script = "from limiter import launch; launch.refuse_limited({})"
    results, said = run(f"umount /run/vgpu; exec {sys.executable} -c '{script}'", PYTHONPATH=str(ROOT))
    assert results == []
    assert "LimiterError: this container is limited already" in said
