"""The component for nodes without NVIDIA's container toolkit, and the cleanup after it."""

from pathlib import Path

import pytest
import yaml
from pydantic_settings import CliApp

from deviceplugin.driver import cdi
from deviceplugin.settings import PluginSettings
from tests.manifests.test_base import BASE, CLEANUP, one
from vgpu.domain.json_types import JsonObject

DEVICE_PLUGIN = BASE.parent / "components" / "without-toolkit" / "deviceplugin.yaml"


def settings_of(container: JsonObject, monkeypatch: pytest.MonkeyPatch) -> PluginSettings:
    monkeypatch.setenv("NODE_NAME", "n")
    return CliApp.run(PluginSettings, cli_args=container["args"])


def node_path(pod: JsonObject, path: Path) -> Path:
    """Return what the node has at a path of the pod's container."""
    volumes = {volume["name"]: Path(volume["hostPath"]["path"]) for volume in pod["volumes"]}
    (container,) = pod["containers"]
    mounts = {Path(mount["mountPath"]): volumes[mount["name"]] for mount in container["volumeMounts"]}
    nearest = max((mount for mount in mounts if path.is_relative_to(mount)), key=lambda mount: len(mount.parts))
    return mounts[nearest] / path.relative_to(nearest)


def test_the_device_plugin_brings_the_driver_from_the_nodes_root(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = yaml.safe_load(DEVICE_PLUGIN.read_text())["spec"]["template"]["spec"]
    settings = settings_of(pod["containers"][0], monkeypatch)
    assert settings.writes_cdi
    assert settings.brings_driver
    assert node_path(pod, settings.driver_root) == Path("/")
    assert node_path(pod, settings.cdi_dir) == cdi.FOLDER
    assert node_path(pod, Path("/dev")) == Path("/dev")


def test_the_arguments_of_the_base_stay() -> None:
    """A patch replaces the whole list of arguments."""
    (base,) = one("DaemonSet", "vgpu-deviceplugin")["spec"]["template"]["spec"]["containers"]
    (patched,) = yaml.safe_load(DEVICE_PLUGIN.read_text())["spec"]["template"]["spec"]["containers"]
    assert set(base["args"]) <= set(patched["args"])


def test_the_cleanup_removes_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = yaml.safe_load_all(CLEANUP.read_text())
    (daemon_set,) = [document for document in documents if document["kind"] == "DaemonSet"]
    pod = daemon_set["spec"]["template"]["spec"]
    assert node_path(pod, settings_of(pod["containers"][0], monkeypatch).cdi_dir) == cdi.FOLDER
