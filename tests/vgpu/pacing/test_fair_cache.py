"""A memory in which owners have equal parts."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vgpu.pacing.fair_cache import FairCache

SIZE = 4


def test_a_crowd_displaces_its_own_oldest_values_only() -> None:
    cache = FairCache[str, str, int](10)
    cache.put("b", "b", 0)
    displaced = [cache.put("a", f"a{number}", number) for number in range(50)]
    assert displaced == [*[None] * 9, *range(41)]
    assert sorted(key for key, _ in cache.items()) == [*(f"a{number}" for number in range(41, 50)), "b"]


def test_a_value_that_was_put_again_is_the_latest() -> None:
    cache = FairCache[str, int, str](2)
    cache.put("a", 1, "old")
    cache.put("a", 2, "other")
    cache.put("a", 1, "new")
    assert (cache.put("a", 3, "third"), cache.get(1), cache.get(2)) == ("other", "new", None)


def test_of_owners_with_equally_many_the_one_that_put_nothing_for_longest_loses() -> None:
    cache = FairCache[int, int, int](SIZE)
    for owner in (0, 1, 2, 3, 0, 4):
        cache.put(owner, owner, owner)
    assert sorted(key for key, _ in cache.items()) == [0, 2, 3, 4]


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()))


@given(STEPS)
def test_the_owner_of_most_loses_its_oldest_value(steps: list[tuple[str, int, bool]]) -> None:
    cache, twin = FairCache[str, str, object](SIZE), dict[str, object]()
    for owner, number, is_put in steps:
        key, value = f"{owner}{number}", object()
        if not is_put:
            assert cache.pop(key) is twin.pop(key, None)
            continue
        twin.pop(key, None)
        twin[key] = value
        displaced, counts = cache.put(owner, key, value), Counter(kept[0] for kept in twin)
        assert (displaced is None) == (len(twin) <= SIZE)
        if displaced is not None:
            lost = next(kept for kept in twin if twin[kept] is displaced)
            assert counts[lost[0]] == max(counts.values())
            assert lost == next(kept for kept in twin if kept[0] == lost[0])
            del twin[lost]
        assert (dict(cache.items()), len(cache)) == (twin, len(twin))
        assert all(cache.get(kept) is twin[kept] for kept in twin)
