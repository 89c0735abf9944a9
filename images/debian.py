"""Debian packages, pinned in debian.lock by version and SHA-256: downloaded by apt-get, unpacked without scripts.

apt runs with a configuration of its own, so it works for every architecture, needs no root and changes nothing here.
"""

import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from images import layers

LOCK: Final = Path(__file__).parent / "debian.lock"
MIRROR: Final = "http://deb.debian.org/{archive}"  # or http://snapshot.debian.org/archive/{archive}/20261123T000000Z
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's names are also those of OCI
NAMES: Final = (
    "base-files",  # /etc/os-release, by which scanners know the distribution
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)

_RELEASE: Final = "bookworm"
_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES: Final = {"debian": _RELEASE, "debian-security": f"{_RELEASE}-security"}
_URI = re.compile(
    r"^'\S+' (?P<name>[^_]+)_(?P<version>[^_]+)_\S+\.deb \d+ SHA256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE
)
_LEFT_OUT = re.compile(
    r"usr/share/(man|lintian|locale|info|bug|menu|applications|pixmaps|binfmts|base-files|doc/.*/(?!copyright$)[^/]*$)"
    r"|usr/lib/python3\.11/(test|ensurepip|idlelib|lib2to3|tkinter|turtledemo|pydoc_data)/"
    r"|usr/lib/python3\.11/lib-dynload/(_dbm|nis|readline|_curses|_curses_panel)\."  # their libraries are not installed
    r"|etc/(?!os-release$|debian_version$)"
    r"|usr/(s?bin/(?!python3\.11$)|lib/.*/gconv/)"
)
_MERGED: Final = ("bin", "sbin", "lib", "lib64")


class PackageError(Exception):
    """Packages cannot be downloaded, or are not those of the lock."""


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """A Debian package; `architecture` is that of the image, also where the package fits all."""

    architecture: str
    name: str
    version: str
    sha256: str


def parse(text: str) -> list[Package]:
    """Read the lock: one package on each line. Raises ValueError with the number of a line that is none."""
    lines = enumerate(text.splitlines(), 1)
    return [_package(number, line) for number, line in lines if line and not line.startswith("#")]


def _package(number: int, line: str) -> Package:
    words = line.split()
    if len(words) != len(Package.__slots__) or not re.fullmatch("[0-9a-f]{64}", words[-1]):
        raise ValueError(f"debian.lock, line {number}: expected ARCHITECTURE NAME VERSION SHA256, found {line!r}")
    return Package(*words)


def formatted(packages: Iterable[Package]) -> str:
    """Text of the lock."""
    head = "# Debian packages of the images. `make lock-images` writes this file.\n"
    return head + "".join(
        f"{package.architecture} {package.name} {package.version} {package.sha256}\n" for package in sorted(packages)
    )


def listed(uris: str, architecture: str) -> list[Package]:
    """Packages in the output of `apt-get download --print-uris`."""
    return [
        Package(architecture, found["name"], found["version"].replace("%3a", ":"), found["sha256"])
        for found in _URI.finditer(uris)
    ]


class Apt:
    """apt-get for one architecture, its files in `folder`."""

    def __init__(self, folder: Path, architecture: str, mirror: str = MIRROR) -> None:
        self.folder = folder
        self._architecture = architecture
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(sources(mirror))
        (folder / "apt.conf").write_text(_configuration(folder, architecture))
        self._run("update", "-qq")

    def candidates(self, names: Sequence[str]) -> list[Package]:
        """Return the newest version of each package."""
        return listed(self._run("download", "--print-uris", "-qq", *names), self._architecture)

    def download(self, packages: Sequence[Package]) -> list[Path]:
        """Download packages and check their digests. Raises PackageError."""
        try:
            self._run("download", "-qq", *(f"{package.name}={package.version}" for package in packages))
        except PackageError as error:
            raise PackageError(self._vanished(packages) or str(error)) from None
        return [self._checked(package) for package in packages]

    def _vanished(self, packages: Sequence[Package]) -> str:
        """Return which pinned versions the mirror lacks, and what to do; empty where it has all of them."""
        now = {candidate.name: candidate for candidate in self.candidates([package.name for package in packages])}
        gone = [package for package in packages if now.get(package.name) != package]
        if not gone:
            return ""
        listed = ", ".join(
            f"{package.name} {package.version} (now {_version(now.get(package.name))})" for package in gone
        )
        return (
            f"the mirror no longer has these packages of images/debian.lock for {self._architecture}: {listed}. Run "
            "`make lock-images` to pin the newest versions, or name a snapshot of the archive with --mirror"
        )

    def _checked(self, package: Package) -> Path:
        version = package.version.replace(":", "%3a")
        (path,) = self.folder.glob(f"{package.name}_{version}_*.deb")
        found = layers.digest(path)
        if found != f"sha256:{package.sha256}":
            raise PackageError(f"{path.name} has {found}, debian.lock says sha256:{package.sha256}")
        return path

    def _run(self, *arguments: str) -> str:
        environment = os.environ | {"APT_CONFIG": str(self.folder / "apt.conf")}
        command = ["apt-get", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise PackageError(f"apt-get {arguments[0]}: {done.stderr.strip()[-800:]}")
        return done.stdout


def _version(package: Package | None) -> str:
    return package.version if package else "none"


def sources(mirror: str) -> str:
    """Text of sources.list; `{archive}` in the mirror's URL becomes debian or debian-security."""
    options = f"[signed-by={_KEYS} check-valid-until=no]"
    lines = (f"deb {options} {mirror.format(archive=archive)} {suite} main\n" for archive, suite in _SOURCES.items())
    return "".join(lines)


def _configuration(folder: Path, architecture: str) -> str:
    settings = {
        "APT::Architecture": architecture,
        "APT::Update::Error-Mode": "any",  # an archive that cannot be reached is an error, not a warning
        "APT::Sandbox::User": "root",  # the folder may be one that _apt cannot enter
        "Acquire::Languages": "none",
        "Acquire::ForceHash": "SHA256",
        "Dir::State::status": f"{folder}/status",
        "Dir::State::lists": f"{folder}/lists",
        "Dir::Cache": f"{folder}/cache",
        "Dir::Etc::sourcelist": f"{folder}/sources.list",
        "Dir::Etc::sourceparts": "-",
    }
    architectures = f'#clear APT::Architectures;\nAPT::Architectures {{ "{architecture}"; }};\n'
    return architectures + "".join(f'{key} "{value}";\n' for key, value in settings.items())


def unpack(archive: Path, tree: Path) -> None:
    """Unpack a package's files that are wanted, and put its description where scanners look for it."""
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        for entry in files:
            place = destination(entry.name)
            if place and not entry.isdir():
                _write(files, entry, tree / place)
    control = subprocess.run(["dpkg-deb", "--field", archive], check=True, capture_output=True).stdout
    described = tree / "var/lib/dpkg/status.d" / archive.name.partition("_")[0]
    described.parent.mkdir(parents=True, exist_ok=True)
    described.write_bytes(control)


def destination(name: str) -> str | None:
    """Path of a package's file in the image, where /lib is /usr/lib; None for a file that is left out."""
    path = PurePosixPath(name.removeprefix("./"))
    if ".." in path.parts or path.is_absolute():
        raise PackageError(f"a package has the file {name!r}")
    text = f"usr/{path}" if path.parts[:1] and path.parts[0] in _MERGED else str(path)
    return None if _LEFT_OUT.match(text) else text


def _write(files: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        target.symlink_to(entry.linkname)
        return
    source = files.extractfile(entry)  # of a hard link: the file that it names
    if source is not None:
        with target.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        target.chmod(entry.mode & 0o777)


def licences(tree: Path) -> dict[str, str]:
    """Return the licences of the packages in a tree, as their copyright files name them.

    Only a file in the form of DEP 5, whose first field is Format, names them; another may have prose after `License:`.
    https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    """
    found = {}
    for path in sorted((tree / "usr/share/doc").glob("*/copyright")):
        text, package = path.read_text(errors="replace"), path.parent.name
        names = re.findall(r"^License: *(\S[^\n]*)$", text, re.MULTILINE) if text.startswith("Format") else []
        found[package] = " AND ".join(dict.fromkeys(names)) or f"see /usr/share/doc/{package}/copyright"
    return found
