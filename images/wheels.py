"""Python packages: installed into a folder by uv, for any architecture, from hashes that a lock file pins."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.metadata import PackageMetadata
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from images import layers

LOCK: Final = Path(__file__).parent / "wheels.lock"

SITE: Final = "usr/local/lib/python3.11/dist-packages"  # where Debian's Python looks
_FOR_IMAGES: Final = re.compile(
    r"(-none-any|-(cp311-cp311|cp\d+-abi3|py3-none)-[a-z0-9_.]*manylinux[a-z0-9_.]*_(x86_64|aarch64))\.whl$"
)
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
    subprocess.run([_uv(), "pip", "install", "-q", *options, *what], check=True)
    for path in sorted(target.rglob("*")):
        if is_left_out(path.relative_to(target).as_posix()) and path.exists():
            (shutil.rmtree if path.is_dir() else os.unlink)(path)


def is_left_out(path: str) -> bool:
    """Whether a path below the site folder is not needed in an image, or differs from build to build."""
    return _LEFT_OUT.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Distribution:
    """A Python distribution in an image.

    Attributes:
        licence: as its metadata says it; empty where they do not.
        file: of the wheel, and its SHA-256; both empty where wheels.lock has no such wheel.
    """

    name: str
    version: str
    licence: str
    file: str = ""
    sha256: str = ""


def installed(tree: Path) -> list[Distribution]:
    """Return every distribution in a tree, with the wheel in wheels.lock that it was installed from."""
    locked = read_lock(LOCK.read_text())
    found = metadata.distributions(path=[str(tree / SITE)])
    return sorted((_described(distribution, locked) for distribution in found), key=lambda described: described.name)


def own(tree: Path, wheel: Path) -> Distribution:
    """Return the only distribution in a tree, which was installed from our wheel."""
    (found,) = installed(tree)
    return replace(found, file=wheel.name, sha256=layers.digest(wheel).removeprefix("sha256:"))


def _described(distribution: metadata.Distribution, locked: Mapping[str, str]) -> Distribution:
    name, version = distribution.metadata["Name"], distribution.version
    tags = set(re.findall(r"^Tag: (\S+)$", distribution.read_text("WHEEL") or "", re.MULTILINE))
    file = next((file for file in locked if _is_of(file, name, version, tags)), "")
    return Distribution(name, version, _licence(distribution.metadata), file, locked.get(file, ""))


def _is_of(file: str, name: str, version: str, tags: set[str]) -> bool:
    """Whether a wheel's name is that of a distribution, and of the tags that its own file WHEEL has."""
    found_name, found_version, _, found_tags = parse_wheel_filename(file)
    return (
        found_name == canonicalize_name(name)
        and found_version == Version(version)
        and bool({str(tag) for tag in found_tags} & tags)
    )


def _licence(of: PackageMetadata) -> str:
    classifiers = [text.rpartition(" :: ")[2] for text in of.get_all("Classifier", []) if text.startswith("License ::")]
    short = _field(of, "License")
    return _field(of, "License-Expression") or ", ".join(classifiers) or ("" if "\n" in short else short)


def _field(of: PackageMetadata, name: str) -> str:
    return of[name].strip() if name in of else ""


def read_lock(text: str) -> dict[str, str]:
    """Read wheels.lock: the SHA-256 of each wheel, by its file's name."""
    return dict(line.split() for line in text.splitlines() if line and not line.startswith("#"))


def lock(requirements: Path) -> str:
    """Return the wheels for Linux that a lock file allows: their names are in no lock file of pip's format."""
    options = ["-q", "--no-header", "--universal", "--python-version", "3.11", "--format", "pylock.toml"]
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "pylock.toml"
        command: list[str | Path] = [_uv(), "pip", "compile", *options, requirements, "-o", target]
        subprocess.run(command, check=True, capture_output=True)
        packages = tomllib.loads(target.read_text())["packages"]
    found = {
        file: wheel["hashes"]["sha256"]
        for package in packages
        for wheel in package.get("wheels", ())
        if _runs_in_images(file := unquote(wheel["url"].rpartition("/")[2]))
    }
    lines = (f"{file} {found[file]}\n" for file in sorted(found))
    title = (
        f"# Wheels that {requirements.name} allows, for the images' bills of materials: `make lock` writes this file."
    )
    return f"{title}\n{''.join(lines)}"


def _runs_in_images(file: str) -> bool:
    return _FOR_IMAGES.search(file) is not None


def _uv() -> Path:
    return Path(sys.executable).parent / "uv"


def build(project: Path, architecture: str, folder: Path) -> Path:
    """Build our wheel, with the limiter compiled for the architecture."""
    environment = os.environ | {"VGPUSHARE_TARGET": architecture}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
