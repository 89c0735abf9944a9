"""`vgpu doctor --bundle`: what is in the archive, what is not, and what is said where something cannot be had."""

import json
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.vgpu.cli.cluster.conftest import Server, run
from tests.vgpu.cli.cluster.test_endpoint import kubeconfig
from vgpu.cli.cluster.bundle import archive, sources
from vgpu.domain import names

NAME = "vgpu-bundle-20261122T120000Z"
PODS = f"/api/v1/namespaces/{names.NAMESPACE}/pods"


def part(name: str, *, restarts: int = 0, is_ready: bool = True, owner: str = "ReplicaSet") -> dict[str, Any]:
    """A pod of the installation, with a planted secret."""
    return {
        "metadata": {"namespace": str(names.NAMESPACE), "name": name, "ownerReferences": [{"kind": owner}]},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "args": ["--history-url=postgresql://u:planted@db/h"],
                    "ports": [{"name": "metrics", "containerPort": 9874}],
                }
            ]
        },
        "status": {
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
        },
    }


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Path:
    """The kubeconfig of an API server that has the admin REST behind it."""
    extender = part("extender-1", restarts=2)
    server.answers |= {
        f"GET {PODS}": (200, {"items": [extender]}),
        "GET /api/v1/pods": (200, {"items": [], "nextCursor": ""}),  # of the API server, and of the admin REST
        f"GET {PODS}/extender-1/log": (200, "2026-11-22T12:00:00Z token=planted\n"),
        "GET /version": (200, {"gitVersion": "v1.37.0"}),
        f"GET {names.GPUNODES_PATH}": (200, {"items": [{"metadata": {"name": "node-1"}}], "metadata": {}}),
        "GET /api/v1/nodes": (403, {"message": "nodes is forbidden: User me cannot list"}),
    }
    server.answers["GET /metrics"] = (200, "vgpu_cards 4\n")
    return kubeconfig(tmp_path, server.url, {"token": "planted-token"})


def opened(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        files = {entry.name: tar.extractfile(entry) for entry in tar.getmembers()}
        return {name.partition("/")[2]: file.read() for name, file in files.items() if file is not None}


def test_a_bundle_has_answers_objects_logs_and_metrics(cluster: Path, tmp_path: Path) -> None:
    code, output = run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path))
    path = tmp_path / f"{NAME}.tar.gz"
    assert code == 1, output  # the canned summary has an error, which is shown as without a bundle
    assert f"{path}: " in output
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    files = opened(path)
    assert json.loads(files["admin/summary.json"])["findings"]
    assert json.loads(files["admin/explain/default/waits.json"])["pod"]
    assert json.loads(files["kubernetes/gpunodes.json"]) == [{"metadata": {"name": "node-1"}}]
    assert files["logs/extender-1/main.log"] == b"2026-11-22T12:00:00Z token=REMOVED\n"
    assert "logs/extender-1/main.previous.log" in files
    assert files["metrics/extender-1/main.txt"] == b"vgpu_cards 4\n"
    assert not any(b"planted" in content for content in files.values())


def test_what_cannot_be_had_is_named(cluster: Path, tmp_path: Path) -> None:
    _, output = run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path / "case.tar.gz"))
    index = json.loads(opened(tmp_path / "case.tar.gz")["index.json"])
    missing = {row["file"]: row["reason"] for row in index["missing"]}
    assert missing["kubernetes/nodes.json"] == "nodes is forbidden: User me cannot list"
    assert "kubernetes/nodes.json: not collected: nodes is forbidden" in output
    assert {row["file"] for row in index["files"]} | {"README.txt", "index.json"} == set(
        opened(tmp_path / "case.tar.gz")
    )
    assert sum(row["removed"] for row in index["files"]) == 3


def test_no_secret_is_read(cluster: Path, server: Server, tmp_path: Path) -> None:
    run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path))
    assert not [path for _, path, *_ in server.requests if "secrets" in path]


def test_a_server_named_by_its_url_is_not_mixed_with_the_kubeconfigs_cluster(cluster: Path, server: Server) -> None:
    target = cluster.parent / "case.tar.gz"
    run("doctor", "--server", server.url, "--bundle", str(target), KUBECONFIG=str(cluster))
    assert {name.partition("/")[0] for name in opened(target)} == {"README.txt", "index.json", "admin"}


def test_without_any_answer_there_is_no_archive(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:9", {"token": "secret"})
    code, output = run("doctor", "--kubeconfig", str(config), "--bundle", str(tmp_path / "case.tar.gz"))
    assert code == 5
    assert "there is nothing to collect" in output
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize("place", ["none/case.tar.gz", "file/case.tar.gz"])
def test_a_place_that_cannot_be_written(cluster: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    code, output = run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path / place))
    assert code == 6
    assert f"{tmp_path / place}: N" in output  # No such file or directory, Not a directory


def test_what_is_no_file_is_not_replaced_by_an_archive(cluster: Path, tmp_path: Path) -> None:
    """For root an archive could be moved to the place of /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    code, output = run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path / "pipe"))
    assert code == 6
    assert f"{tmp_path / 'pipe'}: is not a regular file" in output
    assert (tmp_path / "pipe").is_fifo()


def test_an_archive_is_not_longer_than_its_bound(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 4000)
    run("doctor", "--kubeconfig", str(cluster), "--bundle", str(tmp_path / "case.tar.gz"))
    index = json.loads(opened(tmp_path / "case.tar.gz")["index.json"])
    assert sum(row["bytes"] for row in index["files"]) <= 4000
    assert any("has 0 MiB already" in row["reason"] for row in index["missing"])


def test_a_server_cannot_name_a_file_outside_of_the_archive(server: Server, tmp_path: Path) -> None:
    page = {"items": [{"namespace": "..", "name": "../../evil"}], "nextCursor": ""}
    server.answers["GET /api/v1/pending"] = (200, page)
    server.answers["GET /api/v1/pods/../../../evil/explain"] = (200, {})
    run("doctor", "--server", server.url, "--bundle", str(tmp_path / "case.tar.gz"))
    assert not [name for name in opened(tmp_path / "case.tar.gz") if "evil" in name]


def test_of_many_pods_those_that_are_ill_and_single_are_chosen() -> None:
    of_nodes = [part(f"plugin-{number}", owner="DaemonSet") for number in range(5000)]
    pods = [*of_nodes, part("extender"), part("ill", is_ready=False, owner="DaemonSet")]
    chosen = [pod["metadata"]["name"] for pod in sources.chosen(pods)]
    assert chosen[:3] == ["ill", "extender", "plugin-0"]
    assert len(chosen) == sources.MAX_PODS
