"""Which assignments are trusted."""

import pytest

from tests.strategies import container, pod
from vgpu.domain import names
from vgpu.domain.asks import request
from vgpu.domain.grants import assignment, assignment_trust
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.grants.assignment_trust import Distrust, DistrustReason
from vgpu.domain.identifiers import CardUuid, ContainerName

SHARE: dict[str, int | str] = {"gpu_mem": 256}
GRANTED = Assignment({ContainerName("main"): (Grant(CardUuid("GPU-0"), 256),)})
RIGHT = assignment.encode(GRANTED)
OTHER = assignment.encode(Assignment({ContainerName("main"): (Grant(CardUuid("GPU-0"), 2048),)}))


def judge(amounts: dict[str, int | str], annotation: str) -> Assignment | Distrust:
    return assignment_trust.judge(request.parse(pod(container(**amounts))), annotation)


def test_an_assignment_is_trusted_for_exactly_the_pods_request() -> None:
    assert judge(SHARE, RIGHT) == GRANTED


def test_a_pod_without_a_request_is_assigned_nothing() -> None:
    assert judge({}, "") == assignment_trust.NOTHING_ASSIGNED


@pytest.mark.parametrize(
    ("amounts", "annotation", "reason", "detail"),
    [
        (SHARE, "", DistrustReason.NO_ASSIGNMENT, "has no assignment"),
        (SHARE, "{", DistrustReason.MALFORMED_ASSIGNMENT, "cannot be read"),
        (SHARE, OTHER, DistrustReason.FOREIGN_ASSIGNMENT, "grants something else"),
        ({}, RIGHT, DistrustReason.FOREIGN_ASSIGNMENT, "asks for nothing"),
        ({"gpu_mem": "2Gi"}, RIGHT, DistrustReason.INVALID_REQUEST, names.GPU_MEM),
    ],
)
def test_each_distrusted_assignment_has_its_reason(
    amounts: dict[str, int | str], annotation: str, reason: DistrustReason, detail: str
) -> None:
    judgement = judge(amounts, annotation)
    assert isinstance(judgement, Distrust)
    assert judgement.reason is reason
    assert detail in judgement.detail
