"""Lists that are kept between requests, against sorting everything again for each page."""

import asyncio
import base64
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.admin.answers import list_cache
from extender.admin.answers.list_cache import MAX_LISTS, ListCache
from extender.admin.answers.paging import ListKind, ListRequest, Row
from extender.admin.exchange.snapshots import ClusterSnapshot
from extender.admin.problems import AdminProblem
from tests.extender.admin.conftest import Admin


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    size: int
    colour: str


def kind(rows: list[str] | None = None) -> ListKind[Thing]:
    def row(thing: Thing, _: Collection[str]) -> Row:
        if rows is not None:
            rows.append(thing.name)
        return {"name": thing.name, "size": thing.size}

    columns = {"name": lambda t: t.name, "size": lambda t: t.size, "colour": lambda t: t.colour}
    return ListKind(columns, ("name",), row, ("name", "size"), name=lambda thing: thing.name)


def wanted(*sort: str, limit: int = 2, cursor: str = "", colour: tuple[str, ...] = ()) -> ListRequest:
    return ListRequest({"colour": colour}, {}, sort, limit, cursor)


async def no_sleep(_: float) -> None:
    """Wait for nothing."""


async def walked(
    kept: ListCache, number: int, things: Iterable[Thing], asked: ListRequest, hidden: str = ""
) -> list[str]:
    """Read a list page by page; the list changes between no two pages."""
    found: list[str] = []
    listed, cursor = list(things), ""
    while True:
        page = await kept.page(
            "things",
            ClusterSnapshot(number),
            listed,
            replace(asked, cursor=cursor),
            kind(),
            caller="me",
            keeps=lambda thing: thing.size < 5,
            sees=lambda thing: thing.colour != hidden,
        )
        found += [row["name"] for row in page.items if isinstance(row, dict)]
        cursor = page.next_cursor
        if not cursor:
            return found


THINGS = st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 5), st.sampled_from("xy")), max_size=8)
SORTS = st.lists(st.sampled_from(["size", "-size", "colour", "-colour", "-name"]), unique=True, max_size=2)


@settings(max_examples=60, deadline=None)
@given(st.lists(THINGS, min_size=1, max_size=4), SORTS, st.sampled_from(["", "x"]), st.integers(1, 4))
async def test_pages_are_those_of_sorting_everything_again(
    versions: list[dict[str, tuple[int, str]]], sort: list[str], colour: str, limit: int
) -> None:
    kept, known = ListCache(no_sleep), dict[str, Thing]()
    asked = wanted(*sort, limit=limit, colour=(colour,) if colour else ())
    for number, version in enumerate(versions, 1):
        made = {name: Thing(name, *values) for name, values in version.items()}
        known = {name: known[name] if known.get(name) == thing else thing for name, thing in made.items()}
        for hidden in ("", "y"):
            listed = [t for t in known.values() if t.size < 5 and colour in ("", t.colour) and t.colour != hidden]
            listed.sort(key=lambda t: t.name)
            for term in reversed(sort):
                field = term.removeprefix("-")
                listed.sort(key=lambda t: getattr(t, field), reverse=term.startswith("-"))
            assert await walked(kept, number, known.values(), asked, hidden) == [t.name for t in listed]


async def test_a_snapshot_costs_the_sort_keys_of_what_has_changed() -> None:
    computed: list[str] = []
    things = [Thing(str(n), n, "x") for n in range(4)]

    def size(thing: Thing) -> int:
        computed.append(thing.name)
        return thing.size

    counting = replace(kind(), columns={**kind().columns, "size": size})
    kept = ListCache(no_sleep)
    for number, listed in enumerate((things, things, [*things[:3], Thing("3", 0, "x")]), 1):
        await kept.page("things", ClusterSnapshot(number), listed, wanted("size", limit=10), counting, caller="me")
    assert computed == ["0", "1", "2", "3", "3"]


async def test_a_long_list_pauses_and_few_lists_are_kept() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    kept = ListCache(sleep)
    things = [Thing(str(n), n, "x") for n in range(10 * list_cache.SLICE)]
    await kept.page("things", ClusterSnapshot(1), things, wanted("size"), kind(), caller="me")
    assert len(pauses) == 10
    for number in range(2 * MAX_LISTS):
        await kept.page(str(number), ClusterSnapshot(1), [], wanted(), kind(), caller="me")
    assert len(kept._lists) == MAX_LISTS


async def test_ever_new_lists_of_one_caller_make_no_list_of_another_be_made_again() -> None:
    computed: list[str] = []

    def size(thing: Thing) -> int:
        computed.append(thing.name)
        return thing.size

    counting, kept = replace(kind(), columns={**kind().columns, "size": size}), ListCache(no_sleep)
    mine = [Thing("mine", 1, "x")]
    await kept.page("mine", ClusterSnapshot(1), mine, wanted("size"), counting, caller="me")
    for number in range(2 * MAX_LISTS):
        await kept.page(str(number), ClusterSnapshot(1), [], wanted(), kind(), caller="other")
    await kept.page("mine", ClusterSnapshot(2), mine, wanted("size"), counting, caller="me")
    assert computed == ["mine"]


async def test_ever_new_lists_of_one_caller_delay_a_list_of_another_by_one() -> None:
    pauses, made = asyncio.Event(), list[str]()

    async def sleep(_: float) -> None:
        await pauses.wait()

    kept, things = ListCache(sleep), [Thing(str(n), n, "x") for n in range(list_cache.SLICE)]

    async def ask(what: str, caller: str) -> None:
        await kept.page(what, ClusterSnapshot(1), things, wanted(), kind(), caller=caller)
        made.append(what)

    async with asyncio.TaskGroup() as group:
        for number in range(30):
            group.create_task(ask(str(number), "other"))
        await asyncio.sleep(0)
        group.create_task(ask("mine", "me"))
        await asyncio.sleep(0)
        pauses.set()
    assert made.index("mine") <= list_cache.MADE_AT_ONCE + 1


async def test_a_cursor_with_other_types_is_refused() -> None:
    kept, things = ListCache(no_sleep), [Thing("a", 1, "x"), Thing("b", 2, "x")]
    digest = wanted("size").digest
    forged = base64.urlsafe_b64encode(msgspec.json.encode([digest, "text", 7])).decode().rstrip("=")
    with pytest.raises(AdminProblem):
        await kept.page("things", ClusterSnapshot(1), things, wanted("size", cursor=forged), kind(), caller="me")


async def test_the_row_of_a_pod_follows_the_pod(admin: Admin) -> None:
    pod = await admin.world.create_pod(gpu_mem=1024)
    (before,) = (await admin.get("/pods"))["items"]
    assert await admin.world.bind(pod) == ""
    await admin.world.until_bound_is_watched(pod)
    await admin.fresh()
    (after,) = (await admin.get("/pods"))["items"]
    assert (before["node"], bool(after["node"]), len(after["gpus"])) == ("", True, 1)
    (chosen,) = (await admin.get("/pods", fields="name,node"))["items"]
    assert chosen == {"name": after["name"], "node": after["node"]}
