"""The component for groups in space: the supervisor of MPS daemons, and what it may do."""

import pytest
import yaml
from pydantic_settings import CliApp

from deviceplugin.space.settings import SpaceSettings
from tests.manifests import chart
from tests.manifests.test_base import BASE, one
from vgpu.domain.json_types import JsonObject
from vgpu.node.space.directories import ALIVE, SUPERVISED_S

FILE = BASE.parent / "components" / "space" / "space.yaml"
DOCUMENTS: list[JsonObject] = list(yaml.safe_load_all(FILE.read_text()))
(DAEMON_SET,) = [document for document in DOCUMENTS if document["kind"] == "DaemonSet"]
POD = DAEMON_SET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
PLUGIN = one("DaemonSet", "vgpu-deviceplugin")["spec"]["template"]["spec"]


def test_an_upgrade_ends_no_group() -> None:
    """Only an administrator's deletion ends a pod: an update does not, and the kubelet has no probe that would."""
    assert DAEMON_SET["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert "livenessProbe" not in CONTAINER


def test_it_runs_where_the_device_plugin_runs_from_the_same_image() -> None:
    for field in ("nodeSelector", "tolerations", "priorityClassName"):
        assert POD[field] == PLUGIN[field]
    assert CONTAINER["image"] == PLUGIN["containers"][0]["image"]
    assert CONTAINER["command"] == ["python", "-m", "deviceplugin.space"]


def test_it_has_the_cards_and_the_folder_of_groups_and_nothing_else_of_the_node() -> None:
    """Neither the API server, nor the node's processes, network and IPC, nor containers' limits."""
    assert POD["automountServiceAccountToken"] is False
    assert {document["kind"] for document in DOCUMENTS} == {"ServiceAccount", "DaemonSet"}  # the account has no rights
    assert not {"hostPID", "hostIPC", "hostNetwork"} & POD.keys()
    assert CONTAINER["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}
    settings = CliApp.run(SpaceSettings, cli_args=CONTAINER.get("args", []))
    paths = [volume["hostPath"]["path"] for volume in POD["volumes"] if "hostPath" in volume]
    assert paths == [str(settings.space_dir)]
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts == {"tmp": "/tmp", "space": str(settings.space_dir)}


def test_it_is_ready_while_the_device_plugin_takes_the_node_for_supervised() -> None:
    (*_, program) = CONTAINER["readinessProbe"]["exec"]["command"]
    assert f"'/var/lib/vgpu/space/{ALIVE}'" in program
    assert f"> {SUPERVISED_S:.0f})" in program


@pytest.mark.parametrize("namespace", ["vgpu-system", "gpus"])
def test_the_chart_gives_it_no_argument_that_it_does_not_know(namespace: str) -> None:
    text = chart.rendered({"space": {"enabled": True, "extraArgs": ["--log-level=debug"]}}, namespace=namespace)
    (container,) = chart.objects(text)["DaemonSet", namespace, "vgpu-space"]["spec"]["template"]["spec"]["containers"]
    assert CliApp.run(SpaceSettings, cli_args=container["args"]).log_level == "debug"


def test_the_charts_daemon_set_follows_the_values_of_the_device_plugin() -> None:
    values = {"space": {"enabled": True}, "deviceplugin": {"runtimeClassName": "nvidia", "nodeSelector": {"a": "b"}}}
    pod = chart.objects(chart.rendered(values))["DaemonSet", "vgpu-system", "vgpu-space"]["spec"]["template"]["spec"]
    assert (pod["runtimeClassName"], pod["nodeSelector"]["a"]) == ("nvidia", "b")
