"""What the rendered objects need on nodes with SELinux."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.manifests import chart
from tests.manifests.components import COMPONENTS
from tests.manifests.objects import MANIFESTS
from vgpu.domain.json_types import JsonObject

CLEANUP = MANIFESTS / "cleanup" / "cleanup.yaml"


def with_folders_of_the_node(objects: Mapping[chart.Key, JsonObject]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the containers that mount a folder of the node."""
    for document in objects.values():
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        of_node = {volume["name"] for volume in pod.get("volumes", ()) if "hostPath" in volume}
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            if of_node & {mount["name"] for mount in container.get("volumeMounts", ())}:
                yield document["metadata"]["name"], container


def assert_selinux_lets_them(objects: Mapping[chart.Key, JsonObject], expected: set[str]) -> None:
    """Assert that SELinux keeps no folder of the node from a container.

    The kubelet gives no label to a hostPath volume. A privileged container has the type spc_t, to which nothing is
    closed, and which may label files.
    """
    found = dict(with_folders_of_the_node(objects))
    assert found.keys() == expected
    for name, container in found.items():
        assert container["securityContext"]["privileged"] is True, name
        assert "seLinuxOptions" not in container["securityContext"], name


@pytest.mark.parametrize("name", COMPONENTS)
def test_containers_of_the_overlays_have_the_folders_of_their_node(name: str) -> None:
    objects = chart.objects(chart.kustomized(MANIFESTS / "overlays" / name))
    assert_selinux_lets_them(objects, {"vgpu-deviceplugin"} | ({"vgpu-space"} if name == "space" else set()))


@pytest.mark.parametrize("enabled", [True, False])
def test_containers_of_the_chart_have_the_folders_of_their_node(enabled: bool) -> None:
    objects = chart.objects(chart.rendered({"space": {"enabled": enabled}}))
    assert_selinux_lets_them(objects, {"vgpu-deviceplugin"} | ({"vgpu-space"} if enabled else set()))


def test_the_cleanup_has_the_folders_of_its_node() -> None:
    documents = list(yaml.safe_load_all(Path(CLEANUP).read_text()))
    assert_selinux_lets_them({chart.key(document): document for document in documents if document}, {"vgpu-cleanup"})
