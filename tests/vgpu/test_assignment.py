import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import container, pod
from vgpu import assignment, request
from vgpu.assignment import Assignment, Grant
from vgpu.errors import MalformedAssignment

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
def test_what_is_written_reads_back(chosen: Assignment) -> None:
    assert assignment.decode(assignment.encode(chosen)) == chosen


def test_the_documented_form_of_version_1() -> None:
    text = '{"v":1,"containers":{"main":[{"gpu":"GPU-1","mem":8192,"cores":30}]}}'
    chosen = assignment.decode(text)
    assert chosen == Assignment({"main": (Grant("GPU-1", 8192, 30),)})
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
def test_anything_else_is_malformed(value: object) -> None:
    with pytest.raises(MalformedAssignment):
        assignment.decode(json.dumps(value))


@given(st.text() | st.just("[" * 100_000))
def test_no_text_does_worse_than_malformed(text: str) -> None:
    with contextlib.suppress(MalformedAssignment):
        assignment.decode(text)


@pytest.mark.parametrize(
    ("given_grants", "answers"),
    [
        ((Grant("a", 512, 20),), True),
        ((Grant("a", 513, 20),), False),
        ((Grant("a", 512),), False),
        ((Grant("a", 512, 20, whole=True),), False),
        ((Grant("a", 512, 20), Grant("b", 512, 20)), False),
        ((), False),
    ],
)
def test_an_assignment_answers_only_what_is_asked(given_grants: tuple[Grant, ...], answers: bool) -> None:
    asked = request.parse(pod(container("app", gpu_mem=512, gpu_cores=20))).request
    assert asked is not None
    assert Assignment({"app": given_grants}).answers(asked) is answers
    assert not Assignment({"other": given_grants}).answers(asked)
