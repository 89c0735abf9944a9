"""The overlays that README.md lets an administrator write: they name the registry, and the version of the build."""

import os
import re
from pathlib import Path

import pytest

from images import kustomization
from tests.manifests import chart
from tests.manifests.objects import MANIFESTS

WRITTEN = re.findall(
    r"^```yaml\n(apiVersion: kustomize\.config.*?)^```", (MANIFESTS / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
IMAGE = re.compile(r"image: (\S*vgpushare\S*)")


@pytest.mark.parametrize(("base", "parts"), [("base", 3), ("cleanup", 1)])
def test_an_overlay_as_written_names_images_that_exist(base: str, parts: int, tmp_path: Path) -> None:
    (text,) = [text for text in WRITTEN if f"resources: [../../{base}]" in text]
    folder, component = tmp_path / "overlay", tmp_path / "images"
    for path in (folder, component):
        path.mkdir()
    (component / "kustomization.yaml").write_text(kustomization.component("1.2.3"))
    text = text.replace(f"../../{base}", os.path.relpath(MANIFESTS / base, folder))
    (folder / "kustomization.yaml").write_text(text.replace("../../../dist/images", "../images"))
    images = set(IMAGE.findall(chart.kustomized(folder)))
    assert len(images) == parts
    assert all(image.startswith("REGISTRY/vgpushare-") and image.endswith(":1.2.3") for image in images), images
