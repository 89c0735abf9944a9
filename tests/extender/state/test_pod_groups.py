"""PodGroups say how many pods start together."""

import json
from typing import Any

import pytest

from extender.state import pod_groups
from extender.state.pod_groups import PodGroup, PodGroups
from vgpu.domain.asks.gang import GangSource
from vgpu.domain.identifiers import Namespace

NS = Namespace("ns")


def obj(spec: Any) -> bytes:
    return json.dumps({"metadata": {"namespace": "ns", "name": "train"}, "spec": spec}).encode()


@pytest.mark.parametrize("size", [1, 256])
def test_sizes_are_read(size: int) -> None:
    assert pod_groups.of_coscheduling(obj({"minMember": size})) == PodGroup(NS, "train", size)
    gang = {"schedulingPolicy": {"gang": {"minCount": size}}}
    assert pod_groups.of_kubernetes(obj(gang)) == PodGroup(NS, "train", size)


@pytest.mark.parametrize("size", [None, 0, -1, 257, "8", True, 1.5, 10**30])
def test_a_size_that_cannot_be_used_has_a_problem_with_its_field(size: object) -> None:
    found = pod_groups.of_coscheduling(obj({"minMember": size}))
    assert found.size is None
    assert found.problem.startswith("spec.minMember of PodGroup ns/train must be a whole number from 1 to 256")


@pytest.mark.parametrize(
    ("given", "read"), [(7, 7), (1 << 31, 3600), (0, None), (-1, None), ("7", None), (True, None), (None, None)]
)
def test_the_timeout_of_a_group_is_read_within_bounds(given: object, read: int | None) -> None:
    found = pod_groups.of_coscheduling(obj({"minMember": 2, "scheduleTimeoutSeconds": given}))
    assert found == PodGroup(NS, "train", 2, timeout_s=read)


def test_pods_of_a_group_without_a_gang_policy_start_one_by_one() -> None:
    assert pod_groups.of_kubernetes(obj({"schedulingPolicy": {"basic": {}}})).size == 1


def test_every_change_is_reported_once() -> None:
    changes: list[object] = []
    groups = PodGroups(GangSource.COSCHEDULING, changes.append)
    key = (NS, GangSource.COSCHEDULING, "train")
    groups.upsert(PodGroup(NS, "train", 4))
    groups.upsert(PodGroup(NS, "train", 4))
    groups.upsert(PodGroup(NS, "train", 8))
    assert groups.get(key) == PodGroup(NS, "train", 8)
    groups.replace([], "9")
    groups.delete(PodGroup(NS, "train", 8))
    assert (groups.get(key), changes) == (None, [key] * 3)
