"""Which build a checkout makes: its version in the two spellings that Python and Kubernetes ask for.

A commit with the tag v and the release and no changes is that release. Any other commit is a version before it, by the
commit's time and hash, and by a hash of the changes that are not committed: of all files that git knows, and of new
files in the folders that a build reads. An administrator's overlay in the checkout is no change of the build. So two
builds of different contents have different versions, and their images different tags. Without git the version is read
from what `git archive` wrote into `archived.txt`, or what the build of a source distribution wrote into
`vgpu/version.txt`.

hatchling loads this file by its path when it builds: it imports nothing that has to be installed.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vgpu.domain import build_version

_UNKNOWN: Final = datetime.fromtimestamp(0, UTC)
ROOT: Final = Path(__file__).parents[1]
READ_BY_BUILDS: Final = ("vgpu", "extender", "webhook", "deviceplugin", "limiter", "images", "release", "requirements")
WRITTEN: Final = "vgpu/version.txt"
ARCHIVED: Final = "release/archived.txt"
_RELEASE: Final = re.compile(r'^RELEASE: Final = "(\d+\.\d+\.\d+)"', re.MULTILINE)


class WrongTag(Exception):
    """The commit's tag names another release than `vgpu/__init__.py`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its hash, its time in seconds since 1970, its tags, and a hash of uncommitted changes or empty."""

    hash: str
    time: int
    tags: tuple[str, ...] = ()
    changes: str = ""


@dataclass(frozen=True, slots=True)
class BuildIdentity:
    """A build.

    Attributes:
        version: as Python writes it (PEP 440).
        commit: empty where it is not known.
        time: of the commit; 1970 where it is not known.
        is_changed: whether the tree has changes that the commit has not.
    """

    version: str
    commit: str = ""
    time: datetime = _UNKNOWN
    is_changed: bool = False

    @property
    def tag(self) -> str:
        """The version as image tags, labels, Helm and krew write it (Semantic Versioning)."""
        return build_version.image_tag(self.version)


def identify(release: str, commit: Commit | None) -> BuildIdentity:
    """Return what a commit builds, of code that will be released as `release`. Raises WrongTag."""
    if commit is None:
        return BuildIdentity(f"{release}.dev0")
    time = datetime.fromtimestamp(commit.time, UTC)
    tagged = [tag.removeprefix("v") for tag in commit.tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    if tagged and release not in tagged and not commit.changes:
        raise WrongTag(f"the tag v{tagged[0]} is on a commit whose vgpu/__init__.py names release {release}")
    if tagged and not commit.changes:
        return BuildIdentity(release, commit.hash, time)
    local = f"g{commit.hash[:12]}" + (f".d{commit.changes[:8]}" if commit.changes else "")
    return BuildIdentity(f"{release}.dev{time:%Y%m%d%H%M%S}+{local}", commit.hash, time, bool(commit.changes))


def of_checkout(root: Path = ROOT) -> BuildIdentity:
    """Return what the checkout, the exported tree or the source distribution at `root` builds."""
    written = root / WRITTEN
    if written.exists():
        return BuildIdentity(written.read_text().strip())
    (release,) = _RELEASE.findall((root / "vgpu" / "__init__.py").read_text())
    return identify(release, _of_git(root) or archived((root / ARCHIVED).read_text()))


def of_build(environment: Mapping[str, str]) -> BuildIdentity:
    """Return what this checkout builds; SOURCE_DATE_EPOCH of reproducible builds replaces its time.

    https://reproducible-builds.org/specs/source-date-epoch/
    """
    found = of_checkout()
    epoch = environment.get("SOURCE_DATE_EPOCH")
    return replace(found, time=datetime.fromtimestamp(int(epoch), UTC)) if epoch else found


def version() -> str:
    """Return the version of this checkout, for hatchling."""
    return of_checkout().version


def archived(text: str) -> Commit | None:
    """Read what `git archive` wrote, by .gitattributes; None where it wrote nothing."""
    commit, time, names = text.splitlines()[-3:]
    if commit.startswith("$Format"):
        return None
    return Commit(commit, int(time), tuple(re.findall(r"tag: ([^,\s]+)", names)))


def _of_git(root: Path) -> Commit | None:
    """Return the commit of a checkout; None in a tree without a repository of its own, or without git."""
    if not (root / ".git").exists():
        return None
    found = _git(root, "log", "-1", "--format=%H %ct").decode().split()
    if not found:
        return None
    tags = _git(root, "tag", "--points-at", "HEAD").decode().split()
    return Commit(found[0], int(found[1]), tuple(tags), _changes(root))


def untracked(root: Path, *options: str) -> list[str]:
    """Return the paths below `root` that git neither has nor ignores; with --directory, a folder of such files once."""
    listed = _git(root, "ls-files", "-z", "--others", "--exclude-standard", *options).split(b"\0")
    return [name.decode(errors="surrogateescape") for name in listed if name]


def _changes(root: Path) -> str:
    """Return a hash of what is not committed, with the new files that a build reads; empty where there is nothing."""
    changed = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    new = [name for name in untracked(root) if name.partition("/")[0] in READ_BY_BUILDS]
    if not changed and not new:
        return ""
    found = hashlib.sha256(changed)
    for name in sorted(new):
        path = root / name
        found.update(os.fsencode(name) + b"\0" + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


def _git(root: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=False)
    except OSError:
        return b""
    return done.stdout if done.returncode == 0 else b""
