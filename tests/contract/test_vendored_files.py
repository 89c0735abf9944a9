"""Vendored libraries of the page equal the published files, by their hashes, and have their licence beside them."""

import hashlib
import tomllib
from pathlib import Path

import pytest

from tests.contract.repository import ROOT

VENDOR = ROOT / "extender" / "web" / "vendor"


@pytest.mark.parametrize("folder", sorted(VENDOR.iterdir()), ids=lambda folder: folder.name)
def test_vendored_files_are_the_published_ones(folder: Path) -> None:
    source = tomllib.loads((folder / "source.toml").read_text())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    del files["source.toml"]
    assert files == source["sha256"]
    assert source["license"] in (folder / "LICENSE").read_text()
