"""Pods of the node as the watch shows them: what is read, and what cannot be."""

import json
from typing import Any

from tests import strategies
from vgpu.domain import names
from vgpu.domain.grants.assignment_trust import DistrustReason
from vgpu.node.containers import bound_pod, proof
from vgpu.node.containers.refusal import ContainerRefusal


def text(pod: dict[str, Any]) -> bytes:
    return json.dumps(pod).encode()


def test_a_pod_is_read_with_its_devices() -> None:
    pod = strategies.admit(strategies.pod(strategies.container(gpu_mem=1024), node="n1", phase="Running"))
    pod["status"]["startTime"] = "2026-01-01T00:00:00Z"
    pod["metadata"]["ownerReferences"] = [{"controller": True}]
    read = bound_pod.decode(text(pod))
    assert (read.uid, read.node, read.is_admitted, read.has_controller) == ("u1", "n1", True, True)
    assert [
        (device_request.container, device_request.resource, device_request.amount)
        for device_request in read.device_requests
    ] == [("main", names.SLICE, 4)]


def test_a_pod_with_a_field_of_a_wrong_type_is_known_and_refused_at_its_start() -> None:
    pod = strategies.pod(strategies.container(gpu_mem=1024), node="n1")
    pod["spec"]["containers"][0]["resources"] = 7
    read = bound_pod.decode(text(pod))
    assert (read.uid, read.node) == ("u1", "n1")
    refusal = proof.assignment_of(read)
    assert isinstance(refusal, ContainerRefusal)
    assert refusal.reason is DistrustReason.INVALID_REQUEST
