"""The answers of one snapshot are made once for all clients with equal rights."""

from extender.admin.answers import snapshot_answers
from extender.admin.answers.snapshot_answers import SnapshotAnswers
from tests.extender.admin.conftest import Admin


def test_an_answer_is_made_once_for_a_snapshot_and_a_key() -> None:
    made: list[str] = []
    answers = SnapshotAnswers()

    def asked(number: int, key: str) -> bytes:
        def make() -> bytes:
            made.append(f"{number} {key}")
            return made[-1].encode()

        return answers.get(number, key, make)

    for _ in range(3):
        assert (asked(1, "all"), asked(1, "tenant")) == (b"1 all", b"1 tenant")
    assert made == ["1 all", "1 tenant"]
    assert asked(2, "all") == b"2 all", "a new snapshot"


def test_few_answers_are_kept() -> None:
    answers = SnapshotAnswers()
    for number in range(2 * snapshot_answers.MOST):
        answers.get(1, number, lambda: b"")
    assert answers.get(1, 2 * snapshot_answers.MOST - 1, lambda: b"again") == b"", "the latest is known"
    assert answers.get(1, 0, lambda: b"again") == b"again", "the first is not"


async def test_a_summary_is_that_of_the_snapshot_which_is_the_latest(admin: Admin) -> None:
    assert (await admin.get("/summary"))["pods"]["Pending"] == 0
    await admin.world.create_pod(gpu_mem=512)
    await admin.fresh()
    assert (await admin.get("/summary"))["pods"]["Pending"] == 1
