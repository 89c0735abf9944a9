"""A queue in which owners have turns."""

from hypothesis import given
from hypothesis import strategies as st

from vgpu.pacing.fair_queue import FairQueue

OWNERS = st.sampled_from("abc")


def taken(queue: FairQueue[str, int, object], count: int) -> str:
    """The owners of the next values, which are removed."""
    owners = ""
    for _ in range(count):
        owner, key, value = queue.first()
        queue.done(owner, key, value)
        owners += owner
    return owners


def test_a_crowd_of_one_owner_delays_others_by_one_value() -> None:
    queue = FairQueue[str, int, object](1000)
    for number in range(500):
        queue.put("crowd", number, object())
    queue.put("b", 0, object())
    queue.put("c", 0, object())
    assert [queue.first()[0], taken(queue, 4)] == ["crowd", "crowdbccrowd"]


def test_a_crowd_displaces_its_own_oldest_values_only() -> None:
    queue = FairQueue[str, int, object](10)
    queue.put("b", 0, object())
    for number in range(50):
        queue.put("a", number, object())
    assert len(queue) == 10
    assert taken(queue, 2) == "ba"
    assert queue.first()[1] == 42


def test_a_value_that_was_replaced_meanwhile_stays() -> None:
    queue = FairQueue[str, int, str](10)
    queue.put("a", 1, "old")
    owner, key, value = queue.first()
    queue.put("a", 1, "new")
    assert not queue.done(owner, key, value)
    assert (queue.first(), len(queue)) == (("a", 1, "new"), 1)


def test_a_value_can_leave_out_of_its_turn() -> None:
    queue = FairQueue[str, int, str]()
    for owner in "ab":
        queue.put(owner, 1, owner)
    assert [queue.pop("a", 1), queue.pop("a", 1), queue.pop("a", 2), queue.pop("c", 1)] == ["a", None, None, None]
    assert (queue.first(), len(queue)) == (("b", 1, "b"), 1)


@given(st.lists(st.one_of(st.tuples(OWNERS, st.integers(0, 5)), st.none())))
def test_the_count_is_that_of_the_values_and_stays_within_the_size(steps: list[tuple[str, int] | None]) -> None:
    queue, twin = FairQueue[str, int, object](4), dict[tuple[str, int], object]()
    for step in steps:
        if step is not None:
            value = object()
            queue.put(*step, value)
            twin[step] = value
        elif queue:
            owner, key, value = queue.first()
            assert twin[owner, key] is value
            assert queue.done(owner, key, value)
        assert len(queue) <= 4
    left = len(queue)
    taken(queue, left)
    assert not len(queue)
