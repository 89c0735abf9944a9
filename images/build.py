"""The layers of one architecture: Debian's packages, Python's packages, and ours.

The first two follow from lock files and are kept in a cache folder, by the hash of all that they are made from.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from images import archive_store, bytecode, debian, layers, needed_libraries, oci, page_libraries, parts, sbom, wheels
from release.identity import BuildIdentity

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vgpushare" / "images"
PROJECT: Final = Path(__file__).parents[1]
SBOM: Final = "usr/share/sbom/vgpushare.cdx.json"

_HERE: Final = Path(__file__).parent
_LINKS: Final = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "usr/bin/python": "python3.11",
    "usr/bin/python3": "python3.11",
}
_FOLDERS: Final = ("dev", "etc", "proc", "run", "sys", "tmp", "usr/sbin", "usr/lib64", "var/lib", "var/tmp")
_ACCOUNTS: Final = {"root": 0, "nobody": 65534, "vgpu": 65532}


class IncompleteImage(Exception):
    """A program of an image would not find a library that it needs."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A layer in the cache, and its files."""

    layer: layers.ImageLayer
    tree: Path


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """The image of a part, and its bill of materials."""

    part: parts.ImagePart
    image: oci.Image
    materials: str


class Builder:
    """Builds layers.

    Args:
        cache: folder of the layers that lock files pin.
        machine: architecture of this machine, as `uname -m` names it: its interpreter writes all bytecode.
        mirror: URL of Debian's archives, with `{archive}` in it.
        project: the checkout that is built; its lock files in requirements/ pin the Python packages.
    """

    def __init__(self, cache: Path, machine: str, mirror: str = debian.MIRROR, project: Path = PROJECT) -> None:
        self._cache = cache
        self._machine = machine
        self._mirror = mirror
        self._project = project

    def base(self, architecture: str) -> Stored:
        """Return the layer of Debian's packages, with its files."""
        packages = pinned(architecture)
        sources = [_HERE / name for name in ("build.py", "debian.py", "bytecode.py", "layers.py")]
        key = _key(debian.formatted(packages), *sources)
        return self._stored(key, lambda tree: self._unpack(packages, architecture, tree))

    def dependencies(self, architecture: str, requirements: str) -> Stored:
        """Return the layer of the Python packages that a file of requirements/ pins."""
        sources = [_HERE / name for name in ("build.py", "wheels.py", "bytecode.py", "layers.py")]
        locked = self._project / "requirements" / requirements
        key = _key(architecture, debian.LOCK, locked, *sources)
        return self._stored(key, lambda tree: self._install(locked, architecture, tree))

    def images(self, architecture: str, folder: Path, source: BuildIdentity) -> list[BuiltImage]:
        """Build the images of all parts, their upper layers in `folder`."""
        wheel = wheels.build(self._project, architecture, folder)
        return [self._image(part, wheel, architecture, folder / part.name, source) for part in parts.PARTS]

    def _image(
        self, part: parts.ImagePart, wheel: Path, architecture: str, folder: Path, source: BuildIdentity
    ) -> BuiltImage:
        base, locked = self.base(architecture), self.dependencies(architecture, part.requirements)
        tree = folder / "tree"
        wheels.install_wheel(wheel, architecture, tree)
        for name in parts.left_out(part):
            shutil.rmtree(tree / wheels.SITE / name, ignore_errors=True)
        # What the limiter's libraries need is checked where they are compiled: limiter.build.check.
        self._compile(tree, wheels.SITE)
        found = [*wheels.installed(locked.tree), wheels.own(tree, wheel)]
        licences, served = debian.licences(base.tree), page_libraries.served(tree / wheels.SITE)
        materials = sbom.document(part.repository, source, pinned(architecture), licences, found, served)
        (tree / SBOM).parent.mkdir(parents=True)
        (tree / SBOM).write_text(materials)
        stack = [base.layer, locked.layer, layers.pack(tree, folder / "application.tar.gz")]
        settings = part.settings(source.version, source.commit)
        created = source.time.strftime("%Y-%m-%dT%H:%M:%SZ")
        reference = part.reference(source.tag)
        image = oci.Image(reference, debian.ARCHITECTURES[architecture], settings, stack, created)
        return BuiltImage(part, image, materials)

    def _unpack(self, packages: list[debian.Package], architecture: str, tree: Path) -> None:
        _prepare(tree)
        with tempfile.TemporaryDirectory() as scratch:
            connect = partial(debian.Apt, Path(scratch), debian.ARCHITECTURES[architecture], self._mirror)
            for archive in archive_store.fetch(packages, self._cache / "debian", connect):
                debian.unpack(archive, tree)
        self._compile(tree, "usr/lib/python3.11", tree if architecture == self._machine else None)
        _check([tree])

    def _install(self, requirements: Path, architecture: str, tree: Path) -> None:
        wheels.install_locked(requirements, architecture, tree)
        self._compile(tree, wheels.SITE)
        _check([tree, self.base(architecture).tree])

    def _compile(self, tree: Path, modules: str, interpreter: Path | None = None) -> None:
        bytecode.compile_tree(tree, modules, interpreter or self.base(self._machine).tree, self._machine)

    def _stored(self, key: str, make: Callable[[Path], None]) -> Stored:
        folder = self._cache / key
        if not folder.exists():
            self._store(folder, make)
        found = json.loads((folder / "layer.json").read_text())
        layer = layers.ImageLayer(folder / "layer.tar.gz", found["digest"], found["size"], found["diff_id"])
        return Stored(layer, folder / "tree")

    def _store(self, folder: Path, make: Callable[[Path], None]) -> None:
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix=f"{folder.name}.") as scratch:
            unfinished = Path(scratch) / "layer"
            tree = unfinished / "tree"
            tree.mkdir(parents=True)
            make(tree)
            layer = layers.pack(tree, unfinished / "layer.tar.gz")
            described = {"digest": layer.digest, "size": layer.size, "diff_id": layer.diff_id}
            (unfinished / "layer.json").write_text(json.dumps(described))
            with suppress(OSError):  # another process has built the layer meanwhile
                unfinished.rename(folder)


def pinned(architecture: str) -> list[debian.Package]:
    """Return the Debian packages of an architecture in the lock."""
    wanted = debian.ARCHITECTURES[architecture]
    return [package for package in debian.parse(debian.LOCK.read_text()) if package.architecture == wanted]


def _key(*parts: str | Path) -> str:
    contents = (part if isinstance(part, str) else part.read_text() for part in parts)
    return hashlib.sha256("\0".join(contents).encode()).hexdigest()[:16]


def _prepare(tree: Path) -> None:
    for name in _FOLDERS:
        (tree / name).mkdir(parents=True)
    for link, target in _LINKS.items():
        (tree / link).parent.mkdir(parents=True, exist_ok=True)
        (tree / link).symlink_to(target)
    users = (f"{name}:x:{number}:{number}:{name}:/:/nonexistent\n" for name, number in _ACCOUNTS.items())
    (tree / "etc/passwd").write_text("".join(users))
    (tree / "etc/group").write_text("".join(f"{name}:x:{number}:\n" for name, number in _ACCOUNTS.items()))


def _check(trees: Iterable[Path]) -> None:
    missing = needed_libraries.in_tree(trees)
    if missing:
        found = "; ".join(f"{library}, for {file}" for library, file in sorted(missing.items()))
        raise IncompleteImage(f"no package has {found}: add one to NAMES in images/debian.py, then `make lock-images`")
