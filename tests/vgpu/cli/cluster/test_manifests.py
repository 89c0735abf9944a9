"""What `vgpu simulate -f` reads: pods and the controllers that create pods."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vgpu.cli.cluster import manifests, simulate
from vgpu.cli.cluster.output import Format
from vgpu.cli.failure import CommandFailed
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.placement.policies import DefaultPolicies

SPEC: dict[str, Any] = {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": 1024}}}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}, "spec": SPEC}


def read(folder: Path, *documents: Any) -> list[dict[str, Any]]:
    (folder / "f.yaml").write_text(yaml.safe_dump_all(documents))
    return manifests.read([folder / "f.yaml"], "mine", 1000).entries


@pytest.mark.parametrize(
    ("kind", "spec", "count"),
    [
        ("Deployment", {"replicas": 3, "template": TEMPLATE}, 3),
        ("StatefulSet", {"template": TEMPLATE}, 1),
        ("Job", {"parallelism": 4, "template": TEMPLATE}, 4),
        ("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, 1),
        ("Deployment", {"replicas": 0, "template": TEMPLATE}, 1),
        ("Deployment", {"replicas": None, "template": TEMPLATE}, 1),
    ],
)
def test_controllers(tmp_path: Path, kind: str, spec: dict[str, Any], count: int) -> None:
    (entry,) = read(tmp_path, {"kind": kind, "metadata": {"name": "c", "namespace": "n"}, "spec": spec})
    assert entry["count"] == count
    assert entry["pod"]["metadata"] == {"name": "c", "namespace": "n", "annotations": {"x": "y"}, "labels": {"a": "b"}}
    assert entry["pod"]["spec"] == SPEC


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Deployment", {"template": TEMPLATE}, "spec.template.metadata.annotations"),
        ("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, "spec.jobTemplate.spec.template.metadata."),
    ],
)
def test_annotations_of_a_controller_are_told_as_without_effect(
    tmp_path: Path, kind: str, spec: dict[str, Any], field: str
) -> None:
    file = tmp_path / "f.yaml"
    own = {"vgpu.io/gang": "g", "vgpu.io/gang-size": "8", "example.org/x": "y"}
    metadata = {"name": "c", "annotations": own}
    file.write_text(yaml.safe_dump({"kind": kind, "metadata": metadata, "spec": spec}))
    (said,) = manifests.read([file], "mine", 1000).ignored
    assert said.startswith(
        f"-f: {file}: {kind} c: its own vgpu.io/gang, vgpu.io/gang-size has no effect; write it in {field}"
    )
    file.write_text(yaml.safe_dump({"kind": "Pod", "metadata": metadata, "spec": SPEC}))
    assert manifests.read([file], "mine", 1000).ignored == []


def test_annotations_of_a_controller_and_its_template_have_an_effect(tmp_path: Path) -> None:
    both = {"name": "c", "annotations": {"vgpu.io/gang": "g"}}
    spec = {"template": {"metadata": both, "spec": SPEC}}
    (tmp_path / "f.yaml").write_text(yaml.safe_dump({"kind": "Job", "metadata": both, "spec": spec}))
    assert manifests.read([tmp_path / "f.yaml"], "mine", 1000).ignored == []


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        ("Deployment", {"replicas": 100_000}, "spec.replicas: 100000 pods; one simulation places at most 1000"),
        ("Job", {"parallelism": 1001}, "spec.parallelism: 1001 pods; one simulation places at most 1000"),
        ("Deployment", {"replicas": -1}, "spec.replicas: '-1' is not a whole number"),
        ("Deployment", {"replicas": "7"}, "spec.replicas: '7' is not a whole number"),
        ("Deployment", {"replicas": True}, "spec.replicas: 'True' is not a whole number"),
    ],
)
def test_a_number_of_pods_that_cannot_be_placed_names_its_field(
    tmp_path: Path, kind: str, spec: dict[str, Any], said: str
) -> None:
    with pytest.raises(CommandFailed) as failed:
        read(tmp_path, {"kind": kind, "metadata": {"name": "c"}, "spec": {**spec, "template": TEMPLATE}})
    assert (failed.value.code, str(failed.value)) == (2, f"-f: {tmp_path / 'f.yaml'}: {kind} c: {said}")


def test_pods_of_several_documents_are_counted_together(tmp_path: Path) -> None:
    many = {"kind": "Deployment", "metadata": {"name": "c"}, "spec": {"replicas": 600, "template": TEMPLATE}}
    with pytest.raises(CommandFailed, match="1200 pods in all; one simulation places at most 1000"):
        read(tmp_path, many, many)


def test_pods_lists_and_other_kinds(tmp_path: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
    found = read(tmp_path, {"kind": "Service"}, pod, None, {"kind": "List", "items": [pod, "x"]})
    assert [entry["pod"]["metadata"] for entry in found] == [{"name": "p", "namespace": "mine"}] * 2


@pytest.mark.parametrize("document", [{"kind": "Service"}, ["x"], {"kind": "DaemonSet"}])
def test_nothing_to_place(tmp_path: Path, document: Any) -> None:
    with pytest.raises(CommandFailed) as failed:
        read(tmp_path, document)
    assert failed.value.code == 2


@pytest.mark.heavy
def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "deep").write_text("[" * 50_000)
    (tmp_path / "large").write_bytes(b" " * (manifests.MAX_SIZE + 1))
    for name in ("broken", "deep", "large", "none"):
        with pytest.raises(CommandFailed):
            manifests.read([tmp_path / name], "mine", 1000)


def replaced(found: Any) -> Iterator[Any]:
    """Yield copies of a document, in each of which one value is of another type."""
    yield from (5, [5], True, "\ud800", {"a": 1}, -1, 10**30)
    if isinstance(found, dict):
        yield from ({**found, key: value} for key in found for value in replaced(found[key]))
    elif isinstance(found, list):
        yield from ([*found[:n], value, *found[n + 1 :]] for n in range(len(found)) for value in replaced(found[n]))


METADATA = {"name": "p", "namespace": "n", "labels": {"a": "b"}}
NODE = {"metadata": {"name": "n1"}, "status": {"allocatable": {"vgpu.io/slice": "100", "cpu": "8"}}, "kind": "Node"}
CARD = {"uuid": "GPU-1", "index": 0, "model": "H100", "memoryMiB": 81920}
GPUNODE = {"metadata": {"name": "n1"}, "status": {"sliceMiB": 256, "cards": [CARD]}, "kind": "GPUNode"}
POD = {"kind": "Pod", "metadata": METADATA, "spec": SPEC}
CRON_JOB = {
    "kind": "CronJob",
    "metadata": METADATA,
    "spec": {"jobTemplate": {"spec": {"parallelism": 2, "template": {"metadata": METADATA, "spec": SPEC}}}},
}


@pytest.mark.heavy
@pytest.mark.parametrize("document", [POD, CRON_JOB, {"kind": "List", "items": [POD]}], ids=["pod", "cronjob", "list"])
def test_manifests_of_wrong_types_are_refused_with_a_message_or_ignored(document: Any, tmp_path: Path) -> None:
    cluster, file = tmp_path / "cluster", tmp_path / "file"
    cluster.write_text(json.dumps({"items": [NODE, GPUNODE]}))
    for broken in replaced(document):
        file.write_text(json.dumps(broken))
        _simulate(cluster, [file])


def test_clusters_of_wrong_types_are_refused_with_a_message_or_ignored(tmp_path: Path) -> None:
    for broken in replaced({"items": [NODE, GPUNODE, POD]}):
        (tmp_path / "cluster").write_text(json.dumps(broken))
        _simulate(tmp_path / "cluster", None)


def _simulate(cluster: Path, files: list[Path] | None) -> None:
    """Simulate as the command does, without an exception but the one for messages."""
    with contextlib.suppress(CommandFailed):
        found = simulate.in_file(cluster, files, None, DefaultPolicies(PackingPolicy.BINPACK, PackingPolicy.BINPACK))
        simulate.text(found, Format.TABLE)
