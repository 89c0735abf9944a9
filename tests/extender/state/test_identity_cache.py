"""What was computed of an object is found for the object, and for no other one."""

from extender.state.identity_cache import IdentityCache


def test_each_object_is_computed_once_for_the_same_arguments() -> None:
    asked = list[tuple[list[int], int]]()

    def total(numbers: list[int], more: int) -> int:
        asked.append((numbers, more))
        return sum(numbers) + more

    cache, one, equal = IdentityCache[list[int], int](total), [1, 2], [1, 2]
    assert [cache.of(obj, more) for obj, more in ((one, 0), (equal, 0), (one, 5), (one, 0))] == [3, 3, 8, 3]
    assert len(asked) == 3


def test_an_object_that_is_made_where_another_one_was_is_not_taken_for_it() -> None:
    """CPython gives a new object the id of a deleted one. So the cache keeps each object whose result it keeps."""
    cache = IdentityCache[list[int], int](sum)
    assert [cache.of([number]) for number in range(100)] == list(range(100))


def test_the_oldest_is_forgotten_first() -> None:
    cache = IdentityCache[list[int], int](sum, max_kept=2)
    lists = [[number] for number in range(3)]
    assert [cache.of(listing) for listing in lists] == [0, 1, 2]
    assert [known[0] for known in cache._known.values()] == lists[1:]
