"""Pods that ask vgpushare for nothing by its own names: what explain and doctor say of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.vgpu.cli.cluster import canned
from tests.vgpu.cli.cluster.conftest import Server, run
from tests.vgpu.cli.cluster.test_endpoint import kubeconfig
from vgpu.cli.cluster import other_pods

PODS = "GET /api/v1/pods"
OF_NAMESPACE = "GET /api/v1/namespaces/team/pods"
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}
UNADMITTED = "by names that the webhook translates, and the webhook did not run when the pod was created: vgpu readmit"


def pod(name: str, limits: dict[str, str] | None) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": limits}}
    metadata = {"namespace": "team", "name": name, "creationTimestamp": "2026-11-22T11:00:00Z"}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def found(server: Server, tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    """Return what doctor finds beside what the admin REST answers."""
    server.answers.setdefault(PODS, (200, {"items": []}))
    server.answers["GET /api/v1/summary"] = (200, {**canned.SUMMARY, "findings": []})
    config = kubeconfig(tmp_path, server.url, {"token": "secret"})
    _, output = run("doctor", "-o", "json", *options, KUBECONFIG=str(config))
    findings: list[dict[str, Any]] = json.loads(output)["findings"]
    return findings


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"nvidia.com/gpu": "2"}, "asks NVIDIA's device plugin for cards (nvidia.com/gpu: 2)"),
        ({"nvidia.com/mig-1g.10gb": "1"}, "asks NVIDIA's device plugin for cards (nvidia.com/mig-1g.10gb: 1)"),
        (HAMI, UNADMITTED),
        ({"cpu": "1"}, "asks for no GPU: write vgpu.io/gpu-mem"),
        (None, "asks for no GPU"),
        ({"nvidia.com/gpu": "0"}, "asks for no GPU"),
        (
            {"nvidia.com/gpu-mem": "4000"},
            "asks for nvidia.com/gpu-mem: 4000, which vgpushare does not know; did you mean",
        ),
        (
            {"vgpushare.io/memory": "4"},
            "asks for vgpushare.io/memory: 4, which vgpushare does not know; known: vgpu.io/",
        ),
        ({"amd.com/gpu": "1"}, "asks for no GPU"),
        ({"vgpu.io/gpu-mem": "200000"}, "asks vgpushare for GPUs (vgpu.io/gpu-mem: 200000), and the extender does not"),
        (
            {"vgpu.io/gpu-memory": "1"},
            "asks vgpushare for GPUs (vgpu.io/gpu-memory: 1), and the extender does not know",
        ),
    ],
)
def test_explain_says_what_a_pod_asks_that_asks_vgpushare_for_nothing(
    server: Server, tmp_path: Path, limits: dict[str, str] | None, said: str
) -> None:
    server.answers["GET /api/v1/namespaces/team/pods/other"] = (200, pod("other", limits))
    config = kubeconfig(tmp_path, server.url, {"token": "secret"})
    code, output = run("explain", "other", KUBECONFIG=str(config))
    assert (code, "pod team/other asks" in output, said in output) == (3, True, True), output
    assert "does not exist" in run("explain", "missing", KUBECONFIG=str(config))[1]
    assert "does not exist" in run("explain", "team/other", "--server", server.url, KUBECONFIG=str(config))[1]


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_explain_names_what_stands_where_it_asks_for_nothing(server: Server, tmp_path: Path, where: str) -> None:
    asks = pod("other", None)
    asks["metadata"][where] = {"vgpu.io/gpu-mem": "4000"}
    server.answers["GET /api/v1/namespaces/team/pods/other"] = (200, asks)
    code, output = run("explain", "other", KUBECONFIG=str(kubeconfig(tmp_path, server.url, {"token": "secret"})))
    assert (code, f"asks for no GPU: vgpu.io/gpu-mem among its {where} asks for none" in output) == (3, True), output


@pytest.mark.parametrize(
    "said", ['services "vgpu-admin" not found', "the server could not find the requested resource"]
)
def test_explain_asks_for_the_pod_only_where_the_admin_rest_does_not_know_it(
    server: Server, tmp_path: Path, said: str
) -> None:
    """A 404 of the API server, without vgpushare behind it, was read as "asks for no GPU"."""
    server.answers["GET /api/v1/pods/team/train/explain"] = (404, {"kind": "Status", "message": said})
    server.answers["GET /api/v1/namespaces/team/pods/train"] = (200, pod("train", {"vgpu.io/gpu-mem": "200000"}))
    code, output = run("explain", "train", KUBECONFIG=str(kubeconfig(tmp_path, server.url, {"token": "secret"})))
    assert code == 5
    assert output.startswith(f"vgpu explain: {said}\n  vgpushare is not installed in this namespace"), output
    assert [path for _, path, *_ in server.requests if path == "/api/v1/namespaces/team/pods/train"] == []


def test_doctor_names_a_pod_that_waits_for_nvidias_plugin_where_no_node_has_it(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (200, {"items": [pod("other", {"nvidia.com/gpu": "2"}), pod("none", {"cpu": "1"})]})
    server.answers["GET /api/v1/nodes"] = (200, {"items": [{"status": {"allocatable": {"nvidia.com/gpu": "0"}}}]})
    (finding,) = found(server, tmp_path)
    assert finding["detail"].startswith("asks NVIDIA's device plugin for cards (nvidia.com/gpu: 2), and vgpushare")
    assert "write vgpu.io/gpu: 2 for whole cards" in finding["detail"]
    assert (finding["severity"], finding["about"], finding["since"]) == (
        "warning", "pod team/other", "2026-11-22T11:00:00Z",
    )  # fmt: skip
    asked = [request[2]["fieldSelector"] for request in server.requests if request[1] == "/api/v1/pods"]
    assert asked == [["spec.nodeName=,status.phase=Pending"]]


def test_doctor_names_a_pod_that_waits_for_a_name_that_nobody_gives_out(server: Server, tmp_path: Path) -> None:
    misspelt = [pod("other", {"nvidia.com/gpu-mem": "4000"}), pod("offered", {"example.org/gpu-mem": "1"})]
    server.answers[PODS] = (200, {"items": misspelt})
    server.answers["GET /api/v1/nodes"] = (200, {"items": [{"status": {"allocatable": {"example.org/gpu-mem": "8"}}}]})
    (finding,) = found(server, tmp_path)
    assert (finding["about"], finding["reason"]) == ("pod team/other", "AsksOtherPlugin")
    assert "did you mean vgpu.io/gpu-mem?" in finding["detail"]


def test_doctor_leaves_a_pod_alone_that_nvidias_plugin_can_serve(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (200, {"items": [pod("other", {"nvidia.com/gpu": "2"})]})
    server.answers["GET /api/v1/nodes"] = (200, {"items": [{"status": {"allocatable": {"nvidia.com/gpu": "8"}}}]})
    assert found(server, tmp_path) == []


def test_doctor_finds_a_pod_by_foreign_names_that_the_webhook_has_not_seen(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (200, {"items": [pod("hami", HAMI)]})
    (finding,) = found(server, tmp_path)
    assert (finding["severity"], finding["about"], finding["reason"]) == ("error", "pod team/hami", "NotAdmitted")
    assert UNADMITTED in finding["detail"]
    config = kubeconfig(tmp_path, server.url, {"token": "secret"})
    assert run("doctor", KUBECONFIG=str(config))[0] == 1


def test_doctor_says_nothing_twice_of_pods_that_ask_by_our_names(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (200, {"items": [pod("ours", {"vgpu.io/gpu": "1", "nvidia.com/gpu": "1"})]})
    assert found(server, tmp_path) == []


def test_doctor_looks_at_the_callers_own_namespace_where_it_may_not_list_all(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (403, {"message": "forbidden"})
    assert found(server, tmp_path) == []
    server.answers[OF_NAMESPACE] = (200, {"items": [pod("other", {"nvidia.com/gpu": "1"})]})
    server.answers["GET /api/v1/nodes"] = (403, {"message": "forbidden"})
    assert [row["about"] for row in found(server, tmp_path)] == ["pod team/other"]


def test_doctor_asks_no_kubeconfigs_cluster_about_a_server_that_was_named(server: Server, tmp_path: Path) -> None:
    server.answers[PODS] = (200, {"items": [pod("other", {"nvidia.com/gpu": "2"})]})
    assert found(server, tmp_path, "--server", server.url) == []


def test_doctor_lists_a_bounded_number_of_them(server: Server, tmp_path: Path) -> None:
    many = [pod(f"p{number}", {"nvidia.com/gpu": "1"}) for number in range(other_pods.MAX_FINDINGS + 5)]
    server.answers[PODS] = (200, {"items": many})
    server.answers["GET /api/v1/nodes"] = (200, {"items": []})
    assert len(found(server, tmp_path)) == other_pods.MAX_FINDINGS
    assert sum(request[1] == "/api/v1/nodes" for request in server.requests) == 1
