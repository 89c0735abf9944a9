"""What `vgpu simulate -f` reads: pods and the controllers that create pods."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from vgpu.cli.cluster import manifests
from vgpu.cli.failure import CommandFailed

SPEC: dict[str, Any] = {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 1024}}}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": SPEC}


def read(folder: Path, *documents: Any) -> list[dict[str, Any]]:
    (folder / "f.yaml").write_text(yaml.safe_dump_all(documents))
    return manifests.read([folder / "f.yaml"], "mine")


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", {"replicas": 3, "template": TEMPLATE}, 3),
        ("StatefulSet", {"template": TEMPLATE}, 1),
        ("Job", {"parallelism": 4, "template": TEMPLATE}, 4),
        ("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, 1),
        ("Deployment", {"replicas": -1, "template": TEMPLATE}, 1),
    ],
)
def test_controllers(tmp_path: Path, kind: str, spec: dict[str, Any], count: int) -> None:
    (entry,) = read(tmp_path, {"kind": kind, "metadata": {"name": "c", "namespace": "n"}, "spec": spec})
    assert entry["count"] == count
    assert entry["pod"]["metadata"] == {"name": "c", "namespace": "n", "annotations": {"x": "y"}, "labels": {"a": "b"}}
    assert entry["pod"]["spec"] == SPEC


def test_pods_lists_and_other_kinds(tmp_path: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
    found = read(tmp_path, {"kind": "Service"}, pod, None, {"kind": "List", "items": [pod, "x"]})
    assert [entry["pod"]["metadata"] for entry in found] == [{"name": "p", "namespace": "mine"}] * 2


@pytest.mark.parametrize("document", [{"kind": "Service"}, ["x"], {"kind": "DaemonSet"}])
def test_nothing_to_place(tmp_path: Path, document: Any) -> None:
    with pytest.raises(CommandFailed) as failed:
        read(tmp_path, document)
    assert failed.value.code == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "deep").write_text("[" * 50_000)
    (tmp_path / "large").write_bytes(b" " * (manifests.MAX_SIZE + 1))
    for name in ("broken", "deep", "large", "none"):
        with pytest.raises(CommandFailed):
            manifests.read([tmp_path / name], "mine")
