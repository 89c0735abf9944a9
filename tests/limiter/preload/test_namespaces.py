"""Libraries that are loaded past a preloaded library, by RTLD_DEEPBIND or dlmopen(), have the limits too."""

import json
import platform
import subprocess
from pathlib import Path

import pytest

from limiter.build import toolchain
from simgpu.build import OUT
from tests.limiter.conftest import Container

pytestmark = pytest.mark.heavy


HERE = Path(__file__).parent
OUT_OF_MEMORY = 2


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loader")
    driver = str(OUT / "libcuda.so.1")
    sources = {
        "loader": ("loader.c",),
        "linked.so": ("-shared", "plugin.c", driver),
        "lazy.so": ("-shared", "-Wl,-z,lazy", "plugin.c", driver),
        "now.so": ("-shared", "-Wl,-z,now,-z,relro", "plugin.c", driver),
        "looked_up.so": ("-shared", "-DLOOKED_UP", "-DFLAGS=0", "plugin.c"),
        "looked_up_deep.so": ("-shared", "-DLOOKED_UP", "-DFLAGS=RTLD_DEEPBIND", "plugin.c"),
    }
    for name, options in sources.items():
        command = [*toolchain.compiler(platform.machine()), "-D_GNU_SOURCE", "-fPIC", *options, "-ldl"]
        subprocess.run([*command, "-o", str(folder / name)], check=True, cwd=HERE)
    return folder


def run(container: Container, programs: Path, way: str, path: str, mib: int = 40, **more: str) -> list[int]:
    env = container.world.environment(**container.env, VGPU_LOG="off", **more)
    command = [str(programs / "loader"), way, path, str(mib)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=30)
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("way", ["open", "deep", "space"])
@pytest.mark.parametrize("plugin", ["linked", "lazy", "now", "looked_up", "looked_up_deep"])
def test_a_plugin_has_the_limits(container: Container, programs: Path, way: str, plugin: str) -> None:
    assert run(container, programs, way, str(programs / f"{plugin}.so")) == [0, 0, OUT_OF_MEMORY]


@pytest.mark.parametrize("way", ["open", "deep", "space"])
def test_the_driver_itself_has_the_limits(container: Container, programs: Path, way: str) -> None:
    assert run(container, programs, way, "libcuda.so.1") == [0, 0, OUT_OF_MEMORY]
    assert container.world.mib_used() == 0


@pytest.mark.parametrize("way", ["deep", "space"])
def test_what_fits_is_charged_once(container: Container, programs: Path, way: str) -> None:
    assert run(container, programs, way, str(programs / "linked.so"), 30) == [0, 0, 0]
    (card,) = container.region().cards
    assert card.peak_bytes == 60 << 20


@pytest.mark.parametrize("way", ["open", "deep", "space"])
def test_the_namespaces_of_a_process_share_its_account(container: Container, programs: Path, way: str) -> None:
    assert run(container, programs, way, str(programs / "linked.so"), 10, HOLD_MIB="24") == [0, 0, OUT_OF_MEMORY]
    (card,) = container.region().cards
    assert card.peak_bytes == 58 << 20


def test_a_library_without_cuda_loads_as_before(container: Container, programs: Path) -> None:
    for way in ("open", "deep", "space"):
        env = container.world.environment(**container.env)
        command = [str(programs / "loader"), way, "/nowhere.so", "1"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, done.stderr.count("/nowhere.so")) == (1, 1)
