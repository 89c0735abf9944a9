"""What the walk finds about the queue of Kueue."""

import random
from typing import Any

import pytest

from tests.e2e.walk import actions, plan, queue
from tests.e2e.walk.plan import CardMove
from vgpu.domain import names

MIB = queue.QUOTAS[names.GPU_MEM]


def job(name: str, mib: int, *, held: bool, size: int = 1) -> dict[str, Any]:
    made = queue.job(name, size, {names.GPU_MEM: str(mib)}, ends=False)
    made["spec"]["suspend"] = held
    return made


def status(mib: int, *, reserved: int | None = None) -> dict[str, Any]:
    def flavors(total: int) -> list[dict[str, Any]]:
        return [{"name": queue.NAME, "resources": [{"name": names.GPU_MEM, "total": str(total)}]}]

    return {"flavorsReservation": flavors(mib if reserved is None else reserved), "flavorsUsage": flavors(mib)}


def kinds(jobs: list[dict[str, Any]], pods: list[dict[str, Any]], said: dict[str, Any]) -> list[str]:
    return [finding.kind for finding in queue.compared(jobs, pods, said)]


def test_a_queue_that_counts_what_it_has_admitted_is_right() -> None:
    jobs = [job("one", MIB // 4, held=False, size=2), job("two", MIB // 2 + 1, held=True)]
    ended = job("ended", MIB, held=False) | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert kinds([*jobs, ended], [], status(MIB // 2)) == []


def test_what_a_pod_asked_for_is_free_when_it_has_succeeded() -> None:
    one_of_two = job("two", 100, held=False, size=2) | {"status": {"succeeded": 1}}
    assert kinds([one_of_two], [], status(100)) == []


@pytest.mark.parametrize(
    ("jobs", "said", "kind"),
    [
        ([job("one", 100, held=False)], status(200), "is not what it has admitted"),
        ([job("one", 100, held=False)], status(100, reserved=0), "is not what it has admitted"),
        ([job("one", MIB + 1, held=False)], status(MIB + 1), "more than its quota"),
        ([job("one", MIB, held=True)], status(0), "holds back what its quota has room for"),
    ],
)
def test_what_is_wrong(jobs: list[dict[str, Any]], said: dict[str, Any], kind: str) -> None:
    assert any(kind in found for found in kinds(jobs, [], said))


def test_a_pod_that_is_bound_and_held_is_found() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "labels": queue.LABELS},
        "spec": {
            "nodeName": "n", "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            "containers": [{"resources": {"limits": {names.GPU_MEM: str(MIB + 1)}}}],
        },
    }  # fmt: skip
    assert kinds([], [pod], status(0)) == ["a pod runs that Kueue holds back"]


def test_a_seed_decides_which_card_moves() -> None:
    """By how many cards each node has, which moves alone change: no pod is asked about."""
    for seed in range(50):
        move = plan.card_move([4, 4], random.Random(seed))
        assert move == plan.card_move([4, 4], random.Random(seed))
        assert move is not None
        assert move.source in (0, 1)
        assert 0 <= move.card < 4
    assert {plan.card_move([4, 4], random.Random(seed)) for seed in range(200)} == {
        CardMove(source, card) for source in (0, 1) for card in range(4)
    }
    assert plan.card_move([plan.FEWEST_CARDS, plan.FEWEST_CARDS], random.Random(1)) is None


def test_jobs_are_deleted_once_and_with_their_pods() -> None:
    draft = plan.Draft(1)
    for _ in range(20):
        actions.queued_job(draft)
    created = list(draft.jobs)
    while draft.jobs:
        actions.delete_job(draft)
    deleted = [effect for effect in draft.taken() if getattr(effect, "method", "") == "DELETE"]
    assert sorted(effect.path for effect in deleted) == sorted(created)  # type: ignore[union-attr]
    assert {effect.query["propagationPolicy"] for effect in deleted} == {"Background"}  # type: ignore[union-attr]
