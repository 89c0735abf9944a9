"""The version in the manifests: in a checkout they say `dev`, a release has stamped copies."""

import posixpath
import re
import shutil
from pathlib import Path
from typing import Final

from images import parts
from release import identity, site
from release.identity import ROOT

UNSTAMPED: Final = "dev"
MANIFESTS: Final = ROOT / "manifests"

_IMAGES: Final = "|".join(part.repository for part in parts.PARTS)
_STAMPS: Final = (
    re.compile(rf"(?P<before>\b(?:{_IMAGES}):){UNSTAMPED}\b"),
    re.compile(rf"(?P<before>\bapp\.kubernetes\.io/version: ){UNSTAMPED}\b[^\n]*"),
    re.compile(rf"(?P<before>\bvgpu\.io/version: ){UNSTAMPED}\b"),
)


_UPWARDS: Final = re.compile(r"\[([^\]\[]+)\]\((\.\./[^)\s#]*)[^)\s]*\)")
_DOCUMENTS: Final = "\nDocuments such as `docs/guide.md` are pages of this release's `{archive}`.\n"


def stamp(text: str, tag: str) -> str:
    """Return the text of a manifest with a version."""
    for pattern in _STAMPS:
        text = pattern.sub(rf"\g<before>{tag}", text)
    return text


def copy(target: Path, tag: str) -> None:
    """Write a copy of the manifests that git knows, with a version; `target` must not exist."""
    new = {ROOT / name for name in identity.untracked(ROOT, "--directory")}
    left_out = shutil.ignore_patterns("__pycache__", "helm", "krew")

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {*left_out(folder, names), *(name for name in names if Path(folder) / name in new)}

    shutil.copytree(MANIFESTS, target, ignore=ignored)
    for path in target.rglob("*"):
        if path.suffix in (".yaml", ".md"):
            path.write_text(stamp(path.read_text(), tag))
        if path.suffix == ".md":
            path.write_text(readable_alone(path.read_text(), path.parent.relative_to(target).as_posix()))
    readme = target / "README.md"
    title, rest = readme.read_text().split("\n", 1)
    readme.write_text(f"{title}\n{_DOCUMENTS.format(archive=site.archive(tag))}{rest}")


def readable_alone(text: str, folder: str) -> str:
    """Return a document of a folder in manifests/, where links to files outside of manifests/ are the files' names."""

    def named(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[2]))
        if not path.startswith("../"):
            return link[0]
        name = path.removeprefix("../")
        return link[1] if name in link[1] else f"{link[1]} ({name})"

    return _UPWARDS.sub(named, text)
