"""Turns of callers at what only a few may use at once."""

import asyncio

import pytest

from extender.admin.problems import AdminProblem
from extender.admin.security.access import Caller
from extender.admin.security.caller_turns import CallerTurns


class Users:
    """Callers who use turns until they are let go."""

    def __init__(self, turns: CallerTurns) -> None:
        self.turns = turns
        self.using: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._leaving: dict[str, asyncio.Event] = {}

    async def come(self, *callers: str) -> None:
        self._tasks += [asyncio.create_task(self._use(caller)) for caller in callers]
        await settled()

    async def leave(self, caller: str) -> None:
        self._leaving[caller].set()
        await settled()

    async def give_up(self, number: int) -> None:
        self._tasks[number].cancel()
        await settled()

    async def _use(self, caller: str) -> None:
        async with self.turns.turn(caller[0]):
            self.using.append(caller)
            await self._leaving.setdefault(caller, asyncio.Event()).wait()
            self.using.remove(caller)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_crowd_of_one_caller_delays_another_by_one_question() -> None:
    users = Users(CallerTurns(1, 100, 100))
    await users.come(*(f"a{n}" for n in range(20)), "b0", "c0")
    order = []
    for _ in range(5):
        order += users.using
        await users.leave(users.using[0])
    assert order == ["a0", "a1", "b0", "c0", "a2"]


async def test_as_many_as_are_allowed_hold_turns() -> None:
    users = Users(CallerTurns(2, 100, 100))
    await users.come("a0", "a1", "a2", "b0")
    assert users.using == ["a0", "a1"]
    await users.leave("a0")
    assert users.using == ["a1", "a2"]
    await users.leave("a1")
    await users.leave("a2")
    await users.leave("b0")
    await users.come("c0", "c1", "c2")
    assert users.using == ["c0", "c1"]


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_who_gives_up_keeps_no_turn(number: int) -> None:
    users = Users(CallerTurns(1, 100, 100))
    await users.come("a0", "b0", "c0")
    await users.give_up(number)
    left = [caller for caller in ("a0", "b0", "c0") if caller != f"{'abc'[number]}0"]
    users.using = [caller for caller in users.using if caller in left]
    order = []
    for _ in left:
        order += users.using
        await users.leave(users.using[0])
    assert order == left
    await users.come("d0")
    assert users.using == ["d0"]


async def test_who_gives_up_when_the_turn_comes_passes_it_on() -> None:
    turns = CallerTurns(1, 100, 100)
    users = Users(turns)
    await users.come("a0", "b0", "c0")
    users._leaving["a0"].set()
    while turns._waiting.first()[0] != "c":
        await asyncio.sleep(0)
    await users.give_up(1)  # b has been granted its turn, and has not run since
    assert users.using == ["c0"]


async def test_too_many_questions_are_refused_and_forgotten() -> None:
    users = Users(CallerTurns(1, 3, 2))
    await users.come("a0", "a1")
    await refused(users.turns, "a")
    await users.come("b0")
    await refused(users.turns, "c")
    await users.leave("a0")
    await users.come("c0")
    for caller in ("a1", "b0", "c0"):
        await users.leave(caller)
    assert users.using == []


async def refused(turns: CallerTurns, caller: str) -> None:
    with pytest.raises(AdminProblem) as problem:
        await turns.turn(caller).__aenter__()
    assert (problem.value.status, problem.value.headers) == (503, {"Retry-After": "1"})


def test_the_service_accounts_of_a_namespace_count_as_one_caller() -> None:
    mine = {Caller(f"system:serviceaccount:team:{name}").counted_as for name in ("default", "x")}
    assert mine == {"system:serviceaccount:team"}
    assert Caller("system:serviceaccount:team-2:x").counted_as not in mine
    assert Caller("ann:b").counted_as == "ann:b"
