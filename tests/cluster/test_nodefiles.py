"""Each containerd understands every setting of its file: one that it does not know is dropped without an error."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cluster import images, missing, nodefiles
from cluster.programs import containerd
from cluster.programs.containerd import ContainerdMajor

WORK = Path("/work-folder/node1")
CRI_1 = "io.containerd.grpc.v1.cri"
IMAGES_2, RUNTIME_2 = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"


def text(major: ContainerdMajor) -> str:
    return nodefiles.containerd(major, WORK, "127.0.0.2", WORK / "runtime")


@pytest.fixture(params=list(ContainerdMajor))
def major(request: pytest.FixtureRequest) -> ContainerdMajor:
    """A containerd that is installed or built here."""
    found: ContainerdMajor = request.param
    if found is ContainerdMajor.DEBIAN and missing.which("containerd") is None:
        pytest.skip("no containerd here")
    if found is ContainerdMajor.PINNED and not containerd.PROGRAMS.is_built():
        pytest.skip("containerd 2 is not built: python -m cluster.programs.containerd")
    return found


def dumped(major: ContainerdMajor, folder: Path) -> dict[str, Any]:
    """The configuration that containerd runs with, defaults included."""
    (folder / "containerd.toml").write_text(text(major))
    program = containerd.ensure(major).program("containerd")
    command: list[str | Path] = [program, "-c", folder / "containerd.toml", "config", "dump"]
    return tomllib.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def values(table: dict[str, Any], *path: str) -> dict[tuple[str, ...], Any]:
    """Each setting of a table, by its path."""
    found: dict[tuple[str, ...], Any] = {}
    for name, value in table.items():
        here = (*path, name)
        found |= values(value, *here) if isinstance(value, dict) else {here: value}
    return found


def test_every_setting_is_in_force(major: ContainerdMajor, tmp_path: Path) -> None:
    in_force = values(dumped(major, tmp_path))
    written = values(tomllib.loads(text(major)))
    assert {path: in_force.get(path) for path in written} == written


def test_both_files_say_the_same_where_the_versions_can() -> None:
    one = tomllib.loads(text(ContainerdMajor.DEBIAN))["plugins"][CRI_1]
    two = tomllib.loads(text(ContainerdMajor.PINNED))["plugins"]
    assert one["sandbox_image"] == two[IMAGES_2]["pinned_images"]["sandbox"] == images.PAUSE
    assert one["containerd"] == two[RUNTIME_2]["containerd"]
    assert [one["cni"]["bin_dir"]] == two[RUNTIME_2]["cni"]["bin_dirs"]
    assert two[RUNTIME_2]["cdi_spec_dirs"] == ["/var/run/cdi"]
