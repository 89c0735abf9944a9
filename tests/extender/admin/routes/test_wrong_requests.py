"""What is wrong in a request is named by its field, in words that say what to write instead."""

from typing import Any

import pytest

from tests import strategies
from tests.extender.admin.conftest import Admin

GOOD: dict[str, Any] = {"metadata": {"name": "good"}, "spec": {"containers": [strategies.container(gpu_mem=256)]}}


@pytest.mark.parametrize("body", [b"\xff", b"[" * 100_000, b'{"pods": [', b"pods", b'{"pods": "\xff"}'])
async def test_a_body_that_is_no_json_has_a_field(admin: Admin, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = await admin.http.post("/api/v1/simulate", content=body, headers=headers)
    problem = answer.json()
    assert answer.status_code == 400
    (error,) = problem["errors"]
    assert error["field"] == "body"
    assert error["detail"].startswith("is no readable JSON")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("pod", "field", "said"),
    [
        ({"metadata": {"name": "bad"}, "spec": {"containers": "x"}}, "pods[0].pod.spec.containers", "must be a list"),
        ({"spec": {"containers": [7]}}, "pods[0].pod.spec.containers[0]", "must be an object"),
        ({"spec": 7}, "pods[0].pod.spec", "must be an object"),
        (7, "pods[0].pod", "must be an object, a Pod"),
        (None, "pods[0].pod", "must be an object, a Pod"),
        ([], "pods[0].pod", "must be an object, a Pod"),
    ],
)
async def test_a_manifest_that_is_no_pod_is_named_and_the_others_are_placed(
    admin: Admin, pod: Any, field: str, said: str
) -> None:
    problem = await admin.post("/simulate", {"pods": [{"pod": pod}]}, 422)
    assert problem["errors"] == [{"field": field, "detail": said}]
    found = await admin.post("/simulate", {"pods": [{"pod": pod}, {"pod": GOOD}]})
    assert (found["placed"], found["notPlaced"]) == (1, 1)
    assert found["pods"][0]["problems"] == [f"{field}: {said}"]


async def test_a_name_that_is_not_known_is_answered_with_those_that_are(admin: Admin) -> None:
    problem = await admin.get("/nodes", 422, limt=1)
    assert problem["errors"] == [{"field": "limt", "detail": "is not known; did you mean limit?"}]
    problem = await admin.get("/summary", 422, bogus=1)
    assert problem["errors"] == [{"field": "bogus", "detail": "is not known; there are none here"}]
    problem = await admin.get("/pods/default/x/explain", 422, bogus=1)
    assert problem["errors"] == [{"field": "bogus", "detail": "is not known; known: nodes"}]
    problem = await admin.post("/simulate", {"pods": [{"pod": GOOD, "cuont": 2}]}, 422)
    assert problem["errors"] == [{"field": "pods[0].cuont", "detail": "is not known; did you mean count?"}]
    problem = await admin.post("/simulate", {"pods": [{"pod": GOOD}], "zzz": 2}, 422)
    assert problem["errors"] == [{"field": "zzz", "detail": "is not known; known: pods"}]


async def test_values_of_another_type_are_answered_in_words(admin: Admin) -> None:
    assert (await admin.get("/nodes", 422, limit="abc"))["detail"] == "limit: must be a whole number"
    wrong = {"pods": [{"pod": GOOD, "count": "x"}]}
    said = (await admin.post("/simulate", wrong, 422))["detail"]
    assert said == "pods[0].count: must be a whole number from 1 to 1000"
    assert (await admin.post("/simulate", {"pods": 7}, 422))["detail"] == "pods: must be a list"
    assert (await admin.post("/simulate", {}, 422))["detail"] == "pods: is missing"
