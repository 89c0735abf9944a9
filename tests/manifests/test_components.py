"""The components combine: in an overlay of an administrator, in any order but one, and with the version of a build."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from images import kustomization
from tests.manifests import chart, components
from tests.manifests.components import COMPONENTS, overlay
from tests.manifests.objects import MANIFESTS

REFUSED = ("prometheus-operator", "cluster-scheduler")
VERSION = re.compile(r"(?:image: vgpushare-\w+:|\bversion: )(\S+)")


def test_every_folder_is_a_component_that_is_tested_and_documented() -> None:
    found = {
        path.parent.name: yaml.safe_load(path.read_text()) for path in components.FOLDER.glob("*/kustomization.yaml")
    }
    assert found.keys() == set(COMPONENTS)
    assert {component["kind"] for component in found.values()} == {"Component"}
    readme = (MANIFESTS / "README.md").read_text()
    assert [name for name in COMPONENTS if f"`components/{name}/`" not in readme] == []


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_overlay_of_its_name_is_the_base_with_the_component(name: str, tmp_path: Path) -> None:
    assert chart.kustomized(MANIFESTS / "overlays" / name) == chart.kustomized(overlay(tmp_path / "overlay", [name]))


@pytest.mark.parametrize("pair", list(itertools.combinations(COMPONENTS, 2)), ids="+".join)
def test_two_components_give_the_same_objects_in_either_order(pair: tuple[str, str], tmp_path: Path) -> None:
    """Nothing that one has changed is lost by the other, such as an argument of the webhook."""
    swapped = overlay(tmp_path / "swapped", pair[::-1])
    if set(pair) == components.NOT_TOGETHER:
        for folder in (swapped, overlay(tmp_path / "overlay", pair)):
            with pytest.raises(subprocess.CalledProcessError) as error:
                chart.kustomized(folder)
            words = error.value.stderr.replace("-", " ").lower()
            assert "space" in words
            assert re.search("needs nvidia('s)? container toolkit", words), words
        return
    if pair[::-1] == REFUSED:
        with pytest.raises(subprocess.CalledProcessError) as error:
            chart.kustomized(swapped)
        assert "list cluster-scheduler before prometheus-operator" in error.value.stderr
        return
    assert objects(swapped) == objects(overlay(tmp_path / "overlay", pair))


def objects(folder: Path) -> dict[chart.Key, object]:
    """The objects, with the arguments of containers in one order."""
    found = chart.objects(chart.kustomized(folder))
    for document in found.values():
        for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            container["args"] = sorted(container.get("args", ()))
    return dict(found)


@pytest.mark.parametrize("chosen", list(components.combinations()), ids="+".join)
def test_the_component_of_a_build_listed_last_gives_its_version_to_all(chosen: tuple[str, ...], tmp_path: Path) -> None:
    build = tmp_path / "images"
    build.mkdir()
    (build / "kustomization.yaml").write_text(kustomization.component("1.2.3"))
    text = chart.kustomized(overlay(tmp_path / "overlay", [*chosen, build]))
    assert set(VERSION.findall(text)) == {"1.2.3"}
