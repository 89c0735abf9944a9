"""Versions in manifests: stamped copies for a release."""

import re
from pathlib import Path

import yaml

from images import parts
from release import manifests, site

TAG = "0.2.0-dev.20261130010640.g1a2b3c4d5e6f"


def test_a_stamped_copy_says_the_version_everywhere(tmp_path: Path) -> None:
    manifests.copy(tmp_path / "manifests", TAG)
    stamped = {path: path.read_text() for path in (tmp_path / "manifests").rglob("*.yaml")}
    images = [f"{part.repository}:{TAG}" for part in parts.PARTS]
    assert all(any(image in text for text in stamped.values()) for image in images)
    left = re.compile(rf"(vgpushare-\w+:|version: ){manifests.UNSTAMPED}\b")
    assert not [path for path, text in stamped.items() if left.search(text)]
    crd = next(text for path, text in stamped.items() if path.name == "crd.yaml")
    assert yaml.safe_load(crd)["metadata"]["annotations"] == {"vgpu.io/version": TAG}


def test_documents_of_the_archive_link_to_files_beside_them_only(tmp_path: Path) -> None:
    """In place of other links are names of documents, and the archive that has these."""
    copied = tmp_path / "manifests"
    manifests.copy(copied, TAG)
    link = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")
    dead = {(path, to) for path in copied.rglob("*.md") for to in link.findall(path.read_text())}
    assert {(path, to) for path, to in dead if not (path.parent / to).exists()} == set()
    readme = (copied / "README.md").read_text()
    assert (
        readme.splitlines()[2]
        == f"Documents such as `docs/guide.md` are pages of this release's `{site.archive(TAG)}`."
    )
