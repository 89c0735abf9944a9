"""Where a pod is diagnosed, and what kubectl is asked to run there."""

from pathlib import Path
from typing import Any

import pytest

from vgpu.cli.cluster import pod_diagnosis
from vgpu.cli.cluster.pod_diagnosis import PodAddress
from vgpu.cli.failure import ANSWER_IS_NO, NO_ANSWER, NOT_FOUND, WRONG_USAGE, CommandFailed

POD = PodAddress("team", "train-0")


class Server:
    """An API server with one pod, and the device plugin's pods of its node."""

    def __init__(self, pod: dict[str, Any], *plugins: dict[str, Any]) -> None:
        self.pod, self.plugins = pod, plugins
        self.query: dict[str, str] | None = None

    def get(self, path: str, query: dict[str, str] | None = None) -> Any:
        if path == "/api/v1/namespaces/team/pods/train-0":
            return self.pod
        assert path == "/api/v1/namespaces/vgpu-system/pods"
        self.query = query
        return {"items": list(self.plugins)}


def running(node: str = "n1", phase: str = "Running") -> dict[str, Any]:
    return {"spec": {"nodeName": node}, "status": {"phase": phase}}


def plugin(name: str, phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase}}


def test_the_plugin_of_the_pods_node_is_asked() -> None:
    server = Server(running(), plugin("old", "Failed"), plugin("vgpu-deviceplugin-x"))
    assert pod_diagnosis.plugin_beside(server, POD, "vgpu-system") == "vgpu-deviceplugin-x"
    assert server.query == {"labelSelector": pod_diagnosis.PLUGIN_LABEL, "fieldSelector": "spec.nodeName=n1"}


@pytest.mark.parametrize(
    ("server", "code", "said"),
    [
        (Server(running(node="")), ANSWER_IS_NO, "does not run"),
        (Server(running(phase="Succeeded"), plugin("x")), ANSWER_IS_NO, "does not run"),
        (Server(running(), plugin("x", "Pending")), NOT_FOUND, "no pod of the device plugin runs on node n1"),
    ],
)
def test_a_pod_that_cannot_be_watched_is_refused(server: Server, code: int, said: str) -> None:
    with pytest.raises(CommandFailed, match=said) as failure:
        pod_diagnosis.plugin_beside(server, POD, "vgpu-system")
    assert failure.value.code == code


def test_without_a_pod_of_the_device_plugin_the_command_on_the_node_is_named() -> None:
    with pytest.raises(
        CommandFailed, match=r"process of the node, as in `make cluster`.* --live team/train-0/ --state"
    ):
        pod_diagnosis.plugin_beside(Server(running()), POD, "vgpu-system")


def test_names_are_read_with_and_without_a_namespace() -> None:
    assert PodAddress.parse("train-0", "team") == POD
    assert PodAddress.parse("team/train-0", "default") == POD
    assert PodAddress.parse("team/train-0.x", "default") == PodAddress("team", "train-0.x")
    for text in ("--live", "a b", "x/y/z", "../x", "", "A", "a.b/train-0", "team/train..0", f"{'x' * 64}/train-0"):
        with pytest.raises(CommandFailed) as failure:
            PodAddress.parse(text, "team")
        assert failure.value.code == WRONG_USAGE


def kubectl(folder: Path, script: str) -> list[str]:
    path = folder / "kubectl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return [str(path)]


def test_what_the_plugins_pod_prints_is_returned(tmp_path: Path) -> None:
    arguments = pod_diagnosis.command(POD, "plugin-x", "vgpu-system", 5.0, "json")
    text, code = pod_diagnosis.run(kubectl(tmp_path, 'echo "$@"; exit 1'), arguments, 5)
    assert code == 1
    assert text.split() == [
        *["exec", "-n", "vgpu-system", "plugin-x", "-c", "deviceplugin", "--", "python", "-m", "vgpu.cli", "diagnose"],
        *["--live", "team/train-0/", "--state", "/var/lib/vgpu", "--seconds", "5", "-o", "json"],
    ]


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo 'error: forbidden' >&2; exit 1", NO_ANSWER, "error: forbidden"),
        (
            "echo 'vgpu diagnose: --live: no allocation' >&2; echo exit code 3 >&2; exit 3",
            NOT_FOUND,
            "--live: no alloc",
        ),
        ("exit 126", NO_ANSWER, "kubectl exec failed"),
    ],
)
def test_a_failure_says_what_the_last_part_said(tmp_path: Path, script: str, code: int, said: str) -> None:
    with pytest.raises(CommandFailed, match=said) as failure:
        pod_diagnosis.run(kubectl(tmp_path, script), [], 1)
    assert failure.value.code == code


def test_a_missing_kubectl_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="install kubectl"):
        pod_diagnosis.run([str(tmp_path / "kubectl")], [], 1)


def test_the_options_that_name_the_cluster_are_passed_on() -> None:
    assert pod_diagnosis.kubectl_command(None, None) == ["kubectl"]
    assert pod_diagnosis.kubectl_command("c", Path("f")) == ["kubectl", "--kubeconfig=f", "--context=c"]
