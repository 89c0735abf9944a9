"""Watermarks: from the GPUNode's spec into the arbiter's file."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.vgpu.node.builders import NODE, uuid
from vgpu.node.cards import watermarks
from vgpu.node.cards.watermarks import Watermark, Watermarks

DEFAULT = Watermark(90, 70)


def node(*cards: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(json.dumps({"metadata": {"name": NODE}, "spec": {"cards": cards}}).encode())


def test_cards_without_watermarks_have_the_default() -> None:
    cards = watermarks.decode(
        node({"uuid": uuid(1), "cordoned": True}, {"uuid": uuid(0), "watermark": {"high": 80, "low": 5}})
    )
    assert watermarks.encode(DEFAULT, cards) == f"* 90 70\n{uuid(0)} 80 5\n"


@pytest.mark.parametrize("spec", ["{}", '{"spec": null}', '{"spec": {}}', '{"spec": {"cards": null}}'])
def test_a_spec_without_cards_sets_nothing(spec: str) -> None:
    assert watermarks.decode(msgspec.Raw(spec.encode())) == {}


@pytest.mark.parametrize(
    "card",
    [
        {"uuid": uuid(0), "watermark": {"high": 70, "low": 70}},
        {"uuid": uuid(0), "watermark": {"high": 101, "low": 70}},
        {"uuid": uuid(0), "watermark": {"high": 90, "low": -1}},
        {"uuid": uuid(0), "watermark": {"high": 90}},
        {"uuid": uuid(0), "watermark": "90"},
        {"uuid": "x 1 0\n* 100", "watermark": {"high": 90, "low": 70}},
        {"watermark": {"high": 90, "low": 70}},
    ],
)
def test_invalid_watermarks_are_ignored_and_logged(card: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert watermarks.decode(node(card)) == {}
    assert "GPUNode: card" in caplog.text


def test_the_file_is_kept_until_the_gpunode_is_read(tmp_path: Path) -> None:
    path = tmp_path / "watermarks"
    first = Watermarks(path, DEFAULT)
    assert path.read_text() == "* 90 70\n"
    first.upsert({uuid(0): Watermark(50, 40)})
    before = path.read_text()
    second = Watermarks(path, DEFAULT)
    assert path.read_text() == before == f"* 90 70\n{uuid(0)} 50 40\n"
    inode = path.stat().st_ino
    second.replace([{uuid(0): Watermark(50, 40)}], "1")
    assert path.stat().st_ino == inode
    second.replace([], "2")
    assert path.read_text() == "* 90 70\n"
    assert [file.name for file in tmp_path.iterdir()] == ["watermarks"]
