"""Python packages: installed into a folder by uv, for any architecture, from hashes that a lock file pins."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

SITE: Final = "usr/local/lib/python3.11/dist-packages"  # where Debian's Python looks
_LEFT_OUT: Final = re.compile(
    r"(bin|\.lock|.*\.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_cache\.json)"
    r"|numpy(/.+)?/tests|.*\.(c|h|pyx|pxd|a))"
)


def install_locked(requirements: Path, architecture: str, tree: Path) -> None:
    """Install what a lock file pins."""
    _install(["--require-hashes", "-r", str(requirements)], architecture, tree)


def install_wheel(wheel: Path, architecture: str, tree: Path) -> None:
    """Install one wheel."""
    _install([str(wheel)], architecture, tree)


def _install(what: list[str], architecture: str, tree: Path) -> None:
    platform = ["--python-platform", f"{architecture}-manylinux_2_28", "--python-version", "3.11"]
    target = tree / SITE
    options = ["--target", str(target), *platform, "--only-binary", ":all:", "--no-deps", "--link-mode", "copy"]
    subprocess.run([Path(sys.executable).parent / "uv", "pip", "install", "-q", *options, *what], check=True)
    for path in sorted(target.rglob("*")):
        if is_left_out(path.relative_to(target).as_posix()) and path.exists():
            (shutil.rmtree if path.is_dir() else os.unlink)(path)


def is_left_out(path: str) -> bool:
    """Whether a path below the site folder is not needed in an image, or differs from build to build."""
    return _LEFT_OUT.fullmatch(path) is not None


def installed(tree: Path) -> dict[str, str]:
    """Name and version of every distribution in a tree."""
    found = metadata.distributions(path=[str(tree / SITE)])
    return {distribution.metadata["Name"]: distribution.version for distribution in found}


def build(project: Path, architecture: str, folder: Path) -> Path:
    """Build our wheel, with the limiter compiled for the architecture."""
    environment = os.environ | {"VGPUSHARE_TARGET": architecture}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
