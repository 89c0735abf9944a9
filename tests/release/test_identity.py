"""Versions of builds, from a tag, a commit, changes, an exported tree, or nothing."""

import io
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from packaging.version import Version

import vgpu
from release import identity
from release.identity import Commit
from vgpu.domain import build_version

HASH = "1a2b3c4d5e6f" + "0" * 28
TIME = 1_796_000_000
RELEASED = 'RELEASE: Final = "0.2.0"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit."""
    root = tmp_path / "checkout"
    (root / "vgpu").mkdir(parents=True)
    (root / "release").mkdir()
    (root / "vgpu" / "__init__.py").write_text(RELEASED)
    for name in (identity.ARCHIVED, ".gitattributes"):
        (root / name).write_text((identity.ROOT / name).read_text())
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    return root


def git(root: Path, *arguments: str) -> bytes:
    author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    return subprocess.run(["git", "-C", root, *author, *arguments], check=True, capture_output=True).stdout


def test_a_tagged_commit_is_the_release() -> None:
    assert identity.identify("0.2.0", Commit(HASH, TIME, ("v0.2.0", "nightly"))).version == "0.2.0"


def test_a_tag_of_another_release_is_refused() -> None:
    with pytest.raises(identity.WrongTag, match=r"v0\.3\.0.*0\.2\.0"):
        identity.identify("0.2.0", Commit(HASH, TIME, ("v0.3.0",)))


def test_the_first_change_after_a_release_names_the_next_one() -> None:
    """`RELEASE` is edited in a checkout whose commit still has the tag of the release before."""
    changed = identity.identify("0.3.0", Commit(HASH, TIME, ("v0.2.0",), changes="ab" * 32))
    assert changed.version.startswith("0.3.0.dev")


def test_versions_between_releases_are_ordered_by_the_commits_time() -> None:
    builds = [identity.identify("0.2.0", Commit(HASH, TIME + n)) for n in range(2)]
    found = ["0.1.0", *(build.version for build in builds), "0.2.0"]
    assert sorted(found, key=Version) == found


def test_a_tag_is_a_semantic_version_an_image_tag_and_a_label() -> None:
    build = identity.identify("0.2.0", Commit(HASH, TIME, changes="ab" * 32))
    assert build.version == "0.2.0.dev20261130005320+g1a2b3c4d5e6f.dabababab"
    assert build.tag == "0.2.0-dev.20261130005320.g1a2b3c4d5e6f.dabababab"
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", build.tag)
    assert build_version.image_tag("0.2.0") == "0.2.0"


def test_changes_make_another_version_and_no_release(checkout: Path) -> None:
    git(checkout, "tag", "v0.2.0")
    versions = {identity.of_checkout(checkout).version}
    assert versions == {"0.2.0"}
    for content in ("one", "two"):
        (checkout / "vgpu" / "new.py").write_text(content)
        versions.add(identity.of_checkout(checkout).version)
    (checkout / "vgpu" / "__init__.py").write_text(f"{RELEASED}# changed\n")
    versions.add(identity.of_checkout(checkout).version)
    assert len(versions) == 4
    assert not [version for version in versions - {"0.2.0"} if not version.startswith("0.2.0.dev")]


def test_an_overlay_in_the_checkout_makes_no_other_version(checkout: Path) -> None:
    version = identity.of_checkout(checkout).version
    overlay = checkout / "manifests" / "overlays" / "mine" / "kustomization.yaml"
    overlay.parent.mkdir(parents=True)
    for content in ("resources: []", "resources: [a]"):
        overlay.write_text(content)
        assert identity.of_checkout(checkout).version == version
    assert identity.untracked(checkout, "--directory") == ["manifests/"]


def test_an_exported_tree_has_the_version_of_its_commit(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "tag", "v0.2.0")
    for tag in ("v0.2.0", None):
        exported = tmp_path / f"exported-{tag}"
        with tarfile.open(fileobj=io.BytesIO(git(checkout, "archive", "HEAD"))) as archive:
            archive.extractall(exported, filter="data")
        assert identity.of_checkout(exported) == identity.of_checkout(checkout)
        git(checkout, "tag", "-d", "v0.2.0") if tag else None
    assert identity.of_checkout(exported).version.startswith("0.2.0.dev")


def test_a_copy_without_git_is_a_version_before_the_release(tmp_path: Path, checkout: Path) -> None:
    (checkout / ".git").rename(tmp_path / "away")
    assert identity.of_checkout(checkout) == identity.BuildIdentity("0.2.0.dev0")


def test_a_source_distribution_keeps_its_version(checkout: Path) -> None:
    (checkout / identity.WRITTEN).write_text("0.2.0.dev1+gabc\n")
    assert identity.of_checkout(checkout).version == "0.2.0.dev1+gabc"


def test_this_checkout_has_a_version_and_the_package_is_of_its_release() -> None:
    assert Version(identity.version()).release == Version(vgpu.RELEASE).release
    assert vgpu.__version__.startswith(vgpu.RELEASE)
