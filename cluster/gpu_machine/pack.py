"""Packs what a GPU machine without network lacks: `python -m cluster.gpu_machine.pack [FOLDER]` (`make gpu-pack`).

FOLDER (build/gpu-pack) gets `part-1`, `part-2`, ...: each holds at most PART_MIB, since what travels at a time may be
limited. `unpack` puts the parts together on the machine, in any order and one at a time.

The programs of Kubernetes, containerd, runc and etcd, the packages for PYTHON_VERSION, the cluster's images, the
limiter. An item whose files are unchanged is not compressed again.
"""

import argparse
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from cluster import images, missing, progress
from cluster.bare import DRIVER
from cluster.programs import binaries, containerd

PART_MIB: Final = 45
PRESET: Final = 3  # of xz: a sixth larger than by 6, in a quarter of the time
PYTHON_VERSION: Final = os.environ.get("VGPU_GPU_PYTHON_VERSION", "3.12")
FOLDER: Final = binaries.REPOSITORY / "build" / "gpu-pack"

_MIB: Final = 1024 * 1024
_FOR_TESTS: Final = (
    *("pytest", "iniconfig", "pluggy", "packaging", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "execnet"),
    *("hypothesis", "sortedcontainers", "httpx", "httpcore"),
)
_GLIBC: Final = ("2_34", "2_28", "2_27", "2_24", "2_17", "2_5")  # versions of glibc for which wheels are named
_CONTAINERD: Final = ("containerd", "ctr", "containerd-shim-runc-v2")
_DEBIAN: Final = ("runc", "etcd", "busybox")
_THERE: Final = ("numpy",)  # every Python with PyTorch has it


def main() -> None:
    """Pack into the folder that the command line names. Raises SystemExit."""
    parser = argparse.ArgumentParser(prog="python -m cluster.gpu_machine.pack", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="for the parts (default: build/gpu-pack)")
    try:
        pack(parser.parse_args().folder)
    except missing.Missing as lacking:
        parser.exit(1, f"{parser.prog}: cannot pack here: {'; '.join(lacking.things)}\n")


def pack(folder: Path = FOLDER) -> None:
    """Write the parts into `folder`; parts of an earlier time are replaced. Raises missing.Missing."""
    packed = folder / "items"
    packed.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        items = _items(Path(scratch))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            archives = list(pool.map(lambda item: _archive(packed, *item), items.items()))
    for old in set(packed.iterdir()) - set(archives):
        old.unlink()
    for earlier in folder.glob("part-*"):
        shutil.rmtree(earlier)
    for number, part in enumerate(divided({path: path.stat().st_size for path in archives}), start=1):
        _link(part, folder / f"part-{number}")
    progress.say(f"packed into {folder}: {len(archives)} items, {sum(p.stat().st_size for p in archives) // _MIB} MiB")


def divided(sizes: Mapping[Path, int], limit: int = PART_MIB * _MIB) -> list[list[Path]]:
    """Divide files into as few parts of at most `limit` bytes as the largest-first rule finds.

    A file that is larger than the limit is a part of its own.
    """
    parts: list[list[Path]] = []
    for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
        fitting = (part for part in parts if sizes[path] + sum(sizes[other] for other in part) <= limit)
        part = next(fitting, None)
        if part is None:
            parts.append([path])
        else:
            part.append(path)
    return parts


def _items(scratch: Path) -> dict[str, dict[str, Path]]:
    """Return each item's files, by their paths in the unpacked folder."""
    built = {path.name: [path] for path in sorted(binaries.ensure().iterdir())}
    built["containerd-2"] = sorted(containerd.PROGRAMS.ensure().iterdir())
    items = {name: {_cached(path): path for path in paths} for name, paths in built.items()}
    items["containerd"] = {f"bin/{name}": _program(name) for name in _CONTAINERD}
    programs = {f"bin/{name}": _program(name) for name in _DEBIAN}
    items["programs"] = programs | {f"lib/{path.name}": path for path in _libraries()}
    items["images"] = {f"images/{path.name}": path for path in images.build(scratch / "images", DRIVER / "gpuprobe")}
    items["limiter"] = {f"repository/limiter/{path.name}": path for path in _limiter()}
    items[f"packages-{PYTHON_VERSION}"] = {f"wheels/{path.name}": path for path in _wheels(scratch / "wheels")}
    return items


def _cached(path: Path) -> str:
    """Return the place of a built program in the machine's cache."""
    return f"cache/vgpushare/{path.parent.name}/{path.name}"


def _program(name: str) -> Path:
    found = missing.which(name)
    if found is None:
        raise missing.Missing([f"the program {name}"])
    return Path(found)


def _libraries() -> Iterable[Path]:
    """Return the libraries that runc needs beside glibc, under the loader's names."""
    return [path for path in images.linked(_program("runc")) if path.name.startswith("libseccomp")]


def _limiter() -> list[Path]:
    folder = binaries.REPOSITORY / "limiter"
    return [*sorted(folder.glob("*.so")), folder / "vgpu-arbiter"]


def _wheels(folder: Path) -> list[Path]:
    """Download the packages of the cluster's parts and of its tests, as they are locked, for the machine's Python."""
    platforms = [f"--platform=manylinux_{version}_x86_64" for version in _GLIBC]
    platforms += ["--platform=manylinux2014_x86_64", "--platform=manylinux1_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += [f"--python-version={PYTHON_VERSION}", "--implementation=cp", *platforms, "-d", str(folder)]
    folder.mkdir()
    wanted = folder / "requirements.txt"
    locks = binaries.REPOSITORY / "requirements"
    wanted.write_text((locks / "run.lock").read_text() + pinned_in((locks / "dev.lock").read_text(), _FOR_TESTS))
    subprocess.run([*command, "-r", wanted], check=True)
    return [path for path in sorted(folder.glob("*.whl")) if not path.name.startswith(_THERE)]


def pinned_in(lock: str, names: Iterable[str]) -> str:
    """Return the lines of a lock file that pin these packages, with their hashes."""
    wanted, lines, taken = set(names), [], False
    for line in lock.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            taken = line.partition("==")[0] in wanted
        if taken:
            lines.append(line)
    return "".join(lines)


def _archive(folder: Path, name: str, files: Mapping[str, Path]) -> Path:
    """Compress an item into `folder`, under a name with the hash of its contents."""
    hashed = hashlib.sha256()
    for place, path in sorted(files.items()):
        hashed.update(f"{place}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    target = folder / f"{name}-{hashed.hexdigest()[:16]}.tar.xz"
    if not target.exists():
        progress.say(f"compressing {name}")
        unfinished = target.with_suffix(".unfinished")
        with lzma.open(unfinished, "wb", preset=PRESET) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
            for place, path in sorted(files.items()):
                archive.add(path.resolve(), place)
        unfinished.rename(target)
    return target


def _link(files: Iterable[Path], part: Path) -> None:
    part.mkdir()
    for file in files:
        (part / file.name).hardlink_to(file)


if __name__ == "__main__":
    main()
