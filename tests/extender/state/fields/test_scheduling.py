"""What is read of a pod's priority and of its preemption, from the API server's JSON."""

import json

from extender.state.fields.scheduling import Scheduling
from extender.state.pod_reader import PodReader
from vgpu.domain.identifiers import NodeName


def test_every_field_is_read_from_the_watch() -> None:
    pod = {
        "metadata": {
            "name": "vgpu.io",
            "uid": "1",
            "resourceVersion": "12",
            "labels": {"app": "web"},
            "deletionTimestamp": "2026-11-22T12:00:00Z",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"containers": [], "priority": 7, "preemptionPolicy": "Never"},
        "status": {
            "phase": "Pending",
            "startTime": "1970-01-01T00:00:09Z",
            "nominatedNodeName": "n1",
            "containerStatuses": [{}],
        },
    }
    read = PodReader().encoded(json.dumps(pod).encode())
    assert read.scheduling == Scheduling(
        priority=7,
        may_preempt=False,
        nominated_node=NodeName("n1"),
        is_terminating=True,
        started=9.0,
        labels={"app": "web"},
    )
    assert (read.version, read.has_started) == (12, True)
