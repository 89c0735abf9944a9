"""What is read of a pod's times and owner, whatever users write there."""

from typing import Any

import pytest

from extender.state.fields import lifecycle
from extender.state.fields.lifecycle import ContainerRun, Exit, Lifecycle
from vgpu.adapters.kubernetes import pod_json
from vgpu.domain.identifiers import ContainerName


def owned(kind: str, name: str, template: str = "") -> dict[str, Any]:
    labels = {"pod-template-hash": template} if template else {}
    return {"metadata": {"labels": labels, "ownerReferences": [{"controller": True, "kind": kind, "name": name}]}}


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        (owned("ReplicaSet", "web-5d9f7c", "5d9f7c"), ("Deployment", "web")),
        (owned("ReplicaSet", "web", "5d9f7c"), ("ReplicaSet", "web")),
        (owned("Job", "train"), ("Job", "train")),
        (owned("K" * 500, "n\0\n" + "m" * 500), ("K" * 63, "n" + "m" * 250)),
        ({"metadata": {"ownerReferences": [{"kind": "Node", "name": "n1"}]}}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_owner(pod: dict[str, Any], owner: tuple[str, str]) -> None:
    assert lifecycle.decode(pod).owner == owner


def test_times_and_runs() -> None:
    pod = pod_json.decode(
        b"""{"metadata": {"creationTimestamp": "1970-01-01T00:00:01Z"},
        "status": {"conditions": [{"type": "PodScheduled", "lastTransitionTime": "1970-01-01T00:00:02Z"}],
        "containerStatuses": [
          {"name": "a", "restartCount": 2, "state": {"running": {"startedAt": "1970-01-01T00:00:05Z"}},
           "lastState": {"terminated": {"finishedAt": "1970-01-01T00:00:04Z", "exitCode": 1, "reason": "Error"}}},
          {"name": "b", "state": {"waiting": {}}},
          {"name": 7}]}}"""
    )
    ended = ContainerRun(2, 5000, None, Exit(4000, 1, "Error"))
    runs = {ContainerName("a"): ended, ContainerName("b"): ContainerRun(0, 0, waiting="Waiting")}
    assert lifecycle.decode(pod) == Lifecycle(1000, 2000, ("", ""), runs)


def test_why_a_container_waits_is_the_kubelets_word() -> None:
    pod = pod_json.decode(
        b"""{"status": {"containerStatuses": [
          {"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "long"}}},
          {"name": "b", "state": {"running": {"startedAt": "1970-01-01T00:00:05Z"}}},
          {"name": "c", "state": {"terminated": {"finishedAt": "1970-01-01T00:00:05Z", "exitCode": 0}}},
          {"name": "d"}]}}"""
    )
    runs = lifecycle.decode(pod).runs or {}
    assert [run.waiting for run in runs.values()] == ["ImagePullBackOff", "", "", "Waiting"]


def test_a_time_that_cannot_be_read_is_unknown() -> None:
    assert lifecycle.decode({"metadata": {"creationTimestamp": "soon"}}).created_ms == 0
