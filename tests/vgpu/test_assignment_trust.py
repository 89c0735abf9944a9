"""Which assignments are trusted."""

import pytest

from tests.strategies import container, pod
from vgpu import assignment, assignment_trust, names, request
from vgpu.assignment import Assignment, Grant
from vgpu.assignment_trust import Distrust, DistrustReason

SHARE: dict[str, int | str] = {"gpu_mem": 256}
GRANTED = Assignment({"main": (Grant("GPU-0", 256),)})
RIGHT = assignment.encode(GRANTED)
OTHER = assignment.encode(Assignment({"main": (Grant("GPU-0", 2048),)}))


def judged(asked: dict[str, int | str], annotation: str) -> Assignment | Distrust:
    return assignment_trust.judge(request.parse(pod(container(**asked))), annotation)


def test_an_assignment_is_trusted_for_exactly_what_the_pod_asks() -> None:
    assert judged(SHARE, RIGHT) == GRANTED


def test_a_pod_that_asks_for_nothing_is_assigned_nothing() -> None:
    assert judged({}, "") == assignment_trust.NOTHING_ASSIGNED


@pytest.mark.parametrize(
    ("asked", "annotation", "reason", "detail"),
    [
        (SHARE, "", DistrustReason.NO_ASSIGNMENT, "has no assignment"),
        (SHARE, "{", DistrustReason.MALFORMED_ASSIGNMENT, "cannot be read"),
        (SHARE, OTHER, DistrustReason.FOREIGN_ASSIGNMENT, "grants something else"),
        ({}, RIGHT, DistrustReason.FOREIGN_ASSIGNMENT, "asks for nothing"),
        ({"gpu_mem": "2Gi"}, RIGHT, DistrustReason.INVALID_REQUEST, names.GPU_MEM),
    ],
)
def test_anything_else_is_refused_by_name(
    asked: dict[str, int | str], annotation: str, reason: DistrustReason, detail: str
) -> None:
    found = judged(asked, annotation)
    assert isinstance(found, Distrust)
    assert found.reason is reason
    assert detail in found.detail
