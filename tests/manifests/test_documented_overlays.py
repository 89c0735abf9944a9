"""The overlays that README.md lets an administrator write: they name the registry, and the version of the build."""

import os
import re
from pathlib import Path

import pytest
import yaml

from images import kustomization
from images.parts import PARTS
from release import manifests, publish
from tests.manifests import chart
from tests.manifests.components import COMPONENTS
from tests.manifests.objects import MANIFESTS

WRITTEN = re.findall(
    r"^```yaml\n(apiVersion: kustomize\.config.*?)^```", (MANIFESTS / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
BUILD = "../../../dist/images"
IMAGE = re.compile(r"image: (\S*vgpushare\S*)")


@pytest.mark.parametrize(("base", "parts"), [("base", 3), ("cleanup", 1)])
def test_an_overlay_as_written_names_images_that_exist(base: str, parts: int, tmp_path: Path) -> None:
    (text,) = [text for text in WRITTEN if f"resources: [../../{base}]" in text and BUILD in text]
    folder, component = tmp_path / "overlay", tmp_path / "images"
    for path in (folder, component):
        path.mkdir()
    (component / "kustomization.yaml").write_text(kustomization.component("1.2.3"))
    text = text.replace(f"../../{base}", os.path.relpath(MANIFESTS / base, folder))
    (folder / "kustomization.yaml").write_text(text.replace(BUILD, "../images"))
    images = set(IMAGE.findall(chart.kustomized(folder)))
    assert len(images) == parts
    assert all(image.startswith("REGISTRY/vgpushare-") and image.endswith(":1.2.3") for image in images), images


def test_the_overlay_of_a_release_combines_four_components_and_pins_every_image(tmp_path: Path) -> None:
    copied, folder = tmp_path / "manifests", tmp_path / "manifests" / "overlays" / "mine"
    manifests.copy(copied, "1.2.3")
    pinned = copied / publish.PINNED
    pinned.mkdir()
    digests = {part.name: f"sha256:{'0' * 64}" for part in PARTS}
    (pinned / "kustomization.yaml").write_text(kustomization.component("1.2.3", digests))
    folder.mkdir()
    (text,) = [text for text in WRITTEN if pinned.name in text]
    (folder / "kustomization.yaml").write_text(text)
    listed = [Path(path).name for path in yaml.safe_load(text)["components"]]
    assert listed == [*(name for name in COMPONENTS if name != "space"), pinned.name]  # it excludes without-toolkit
    images = IMAGE.findall(chart.kustomized(folder))
    assert set(images) == {f"REGISTRY/{part.repository}@{digests[part.name]}" for part in PARTS}
