"""The assignment annotation: encoding, decoding, and comparison with a request."""

import contextlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import container, pod
from vgpu.domain.asks import request
from vgpu.domain.errors import MalformedAssignment
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment, Grant
from vgpu.domain.identifiers import CardUuid, ContainerName

A, B = CardUuid("a"), CardUuid("b")

grants = st.builds(
    Grant,
    gpu=st.text(min_size=1, max_size=40),
    memory_mib=st.integers(1, 1 << 24),
    cores=st.none() | st.integers(1, 100),
    whole=st.booleans(),
)
assignments = st.builds(
    Assignment, st.dictionaries(st.text(max_size=8), st.lists(grants, max_size=3).map(tuple), max_size=3)
)


@given(assignments)
def test_an_encoded_assignment_decodes_to_itself(chosen: Assignment) -> None:
    assert assignment.decode(assignment.encode(chosen)) == chosen


def test_the_documented_form_of_version_1() -> None:
    text = '{"v":1,"containers":{"main":[{"gpu":"GPU-1","mem":8192,"cores":30}]}}'
    chosen = assignment.decode(text)
    assert chosen == Assignment({ContainerName("main"): (Grant(CardUuid("GPU-1"), 8192, 30),)})
    assert assignment.encode(chosen) == text


GOOD = {"gpu": "GPU-1", "mem": 8192}


@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", {}, {"v": 1}, {"v": 2, "containers": {}}, {"v": True, "containers": {}},
        {"v": 1, "containers": []}, {"v": 1, "containers": {"a": {}}}, {"v": 1, "containers": {"a": [1]}},
        {"v": 1, "containers": {}, "more": 1}, {"v": 1, "containers": {"a": [GOOD | {"more": 1}]}},
        {"v": 1, "containers": {"a": [GOOD | {"mem": -1}]}}, {"v": 1, "containers": {"a": [GOOD | {"mem": 0}]}},
        {"v": 1, "containers": {"a": [GOOD | {"mem": True}]}}, {"v": 1, "containers": {"a": [GOOD | {"mem": "8"}]}},
        {"v": 1, "containers": {"a": [GOOD | {"cores": 101}]}}, {"v": 1, "containers": {"a": [GOOD | {"gpu": 1}]}},
        {"v": 1, "containers": {"a": [GOOD | {"whole": 1}]}},
    ],
)  # fmt: skip
def test_other_texts_are_malformed(value: object) -> None:
    with pytest.raises(MalformedAssignment):
        assignment.decode(json.dumps(value))


@pytest.mark.parametrize(
    ("grant", "why"),
    [
        (1, "[1] must be an object with gpu"),
        (GOOD | {"more": 1}, "[1] must be an object with gpu"),
        (GOOD | {"mem": 0}, "[1].mem must be a whole number"),
        (GOOD | {"cores": None}, "[1].cores must be a whole number"),
        (GOOD | {"whole": 1}, "[1].whole must be true or false"),
    ],
)
def test_an_error_names_the_field(grant: object, why: str) -> None:
    with pytest.raises(MalformedAssignment, match=re.escape(f"containers.main{why}")):
        assignment.decode(json.dumps({"v": 1, "containers": {"main": [GOOD, grant]}}))


@given(st.text() | st.just("[" * 100_000))
def test_any_text_is_decoded_or_malformed(text: str) -> None:
    with contextlib.suppress(MalformedAssignment):
        assignment.decode(text)


@pytest.mark.parametrize(
    ("grants", "answers"),
    [
        ((Grant(A, 512, 20),), True),
        ((Grant(A, 513, 20),), False),
        ((Grant(A, 512),), False),
        ((Grant(A, 512, 20, whole=True),), False),
        ((Grant(A, 512, 20), Grant(B, 512, 20)), False),
        ((), False),
    ],
)
def test_an_assignment_answers_exactly_its_request(grants: tuple[Grant, ...], answers: bool) -> None:
    pod_request = request.parse(pod(container("app", gpu_mem=512, gpu_cores=20))).request
    assert pod_request is not None
    assert Assignment({ContainerName("app"): grants}).answers(pod_request) is answers
    assert not Assignment({ContainerName("other"): grants}).answers(pod_request)
