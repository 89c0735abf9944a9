"""Inside a container the files of /run/vgpu decide, and no environment variable can loosen them."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limiter.conftest import Container
from tests.limiter.fake_arbiter import Arbiter

MOUNT = 'mount -t tmpfs none /run && mkdir /run/vgpu && mount --bind "$FOLDER" /run/vgpu && '
# An /etc with nothing but what the loader reads in it.
LOADED = 'mkdir /run/etc && cp /etc/ld.so.cache "$FOLDER/ld.so.preload" /run/etc && mount --bind /run/etc /etc && '
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c")


@pytest.fixture
def inside(container: Container) -> Callable[..., list[int]]:
    """Runs a shell line with /run/vgpu bound to the container's files; returns the results of its probes."""
    if subprocess.run([*UNSHARE, "mount -t tmpfs none /run"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")

    def run(line: str, **env: str) -> list[int]:
        done = subprocess.run(
            [*UNSHARE, MOUNT + line],
            env={**container.world.environment(), "FOLDER": str(container.folder), **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        return [json.loads(line)["result"] for line in done.stdout.splitlines()]

    return run


@pytest.mark.heavy
@pytest.mark.parametrize(
    "tried",
    [
        {},
        {"VGPU_MEMORY_LIMIT": "1TiB"},
        {"VGPU_LIMITS_FILE": "/nowhere", "VGPU_REGION_FILE": "/nowhere"},
    ],
)
def test_the_limits_file_overrides_the_environment(
    inside: Callable[..., list[int]], container: Container, tried: dict[str, str]
) -> None:
    preload = {"LD_PRELOAD": container.env["LD_PRELOAD"]}
    probe = container.world.bin / "gpuprobe"
    assert inside(f"exec {probe} alloc 40 24 2", **preload, **tried) == [0, 0, 2]


def test_a_missing_region_denies(inside: Callable[..., list[int]], container: Container) -> None:
    (container.folder / "region").unlink()
    preload = {"LD_PRELOAD": container.env["LD_PRELOAD"]}
    assert inside(f"exec {container.world.bin}/gpuprobe alloc 2", **preload) == [2]


def test_ld_so_preload_reaches_every_program(inside: Callable[..., list[int]], container: Container) -> None:
    """The loader reads /etc/ld.so.preload also with a clean environment, in a new shell and after an exec."""
    (container.folder / "ld.so.preload").write_text(f"{container.env['LD_PRELOAD']}\n")
    probe = f"{container.world.bin}/gpuprobe alloc 40 26"
    clean = f"env -i SIMGPU_STATE={container.world.state} LD_LIBRARY_PATH={container.world.bin}"
    line = f"{LOADED} {probe}; {clean} {probe}; {clean} /bin/sh -c 'exec {probe}'"
    assert inside(line) == [0, 2] * 3


@pytest.mark.heavy
def test_the_arbiter_socket_is_that_of_the_container(
    inside: Callable[..., list[int]], container: Container, tmp_path: Path
) -> None:
    """An environment variable does not replace it."""
    arbiter, other = Arbiter(container.folder / "arbiter" / "socket"), Arbiter(tmp_path / "other")
    env = {"LD_PRELOAD": container.env["LD_PRELOAD"], "VGPU_ARBITER_SOCKET": str(tmp_path / "other")}
    inside(f"exec timeout 3 {container.world.bin}/gpuprobe spin 500", **env)
    arbiter.close()
    other.close()
    assert [client.wants > 0 for client in arbiter.clients] == [True]
    assert other.clients == []


def test_a_loader_with_a_preload_file_of_its_own_loads_the_library_from_that_file(
    inside: Callable[..., list[int]], container: Container, tmp_path: Path
) -> None:
    """As the loader of Nix does, whose file is mounted beside glibc's: a copy of the loader that reads another name."""
    (container.folder / "ld.so.preload").write_text(f"{container.env['LD_PRELOAD']}\n")
    loader = tmp_path / "loader"
    content = Path("/lib64/ld-linux-x86-64.so.2").read_bytes()
    loader.write_bytes(content.replace(b"/etc/ld.so.preload", b"/etc/nx.so.preload"))
    loader.chmod(0o755)
    probe = f"{loader} {container.world.bin}/gpuprobe alloc 40 26"
    hidden = LOADED.replace("&& mount", "&& mv /run/etc/ld.so.preload /run/etc/{} && mount")
    assert inside(f"{hidden.format('elsewhere')} {probe}") == [0, 0]
    assert inside(f"{hidden.format('nx.so.preload')} {probe}") == [0, 2]
