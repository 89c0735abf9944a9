"""Documents and archive of an image, as the image specification has them."""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from images import layers, oci, parts


@pytest.fixture
def layer(tmp_path: Path) -> layers.ImageLayer:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_text("content")
    return layers.pack(tmp_path / "tree", tmp_path / "layer.gz")


def image(layer: layers.ImageLayer, part: parts.ImagePart) -> oci.Image:
    return oci.Image(
        part.reference("0.2.0"), "amd64", part.settings("0.2.0", "c0ffee"), [layer], "2026-11-23T00:00:00Z"
    )


def read(archive: tarfile.TarFile, digest: str) -> bytes:
    file = archive.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
    assert file
    content = file.read()
    assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
    return content


def document(archive: tarfile.TarFile, descriptor: dict[str, Any]) -> dict[str, Any]:
    content = read(archive, descriptor["digest"])
    assert descriptor["size"] == len(content)
    found: dict[str, Any] = json.loads(content)
    return found


def test_everything_that_an_archive_names_is_in_it_once(tmp_path: Path, layer: layers.ImageLayer) -> None:
    oci.write([image(layer, part) for part in parts.PARTS], tmp_path / "archive.tar")
    with tarfile.open(tmp_path / "archive.tar") as archive:
        assert len(archive.getnames()) == len(set(archive.getnames()))
        index = json.loads(archive.extractfile("index.json").read())  # type: ignore[union-attr]
        for described, part in zip(index["manifests"], parts.PARTS, strict=True):
            assert described["annotations"]["io.containerd.image.name"] == part.reference("0.2.0")
            manifest = document(archive, described)
            configuration = document(archive, manifest["config"])
            assert configuration["rootfs"]["diff_ids"] == [layer.diff_id]
            assert [descriptor["digest"] for descriptor in manifest["layers"]] == [layer.digest]
            assert len(read(archive, layer.digest)) == layer.size


def test_the_same_image_has_the_same_digest(layer: layers.ImageLayer) -> None:
    first, second = image(layer, parts.PARTS[0]), image(layer, parts.PARTS[0])
    assert first.digest == second.digest
    assert first.digest != image(layer, parts.PARTS[1]).digest


def test_only_the_device_plugin_runs_as_root() -> None:
    users = {part.name: part.settings("0.2.0", "")["User"] for part in parts.PARTS}
    assert users == {"extender": "65532:65532", "webhook": "65532:65532", "deviceplugin": "0:0"}


def test_an_unknown_commit_has_no_label() -> None:
    assert "org.opencontainers.image.revision" not in parts.PARTS[0].settings("0.2.0", "")["Labels"]
    assert parts.PARTS[0].settings("0.2.0", "c0ffee")["Labels"]["org.opencontainers.image.revision"] == "c0ffee"
