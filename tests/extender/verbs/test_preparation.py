"""Between two calls changed nodes are judged for the question asked last, and not for ever."""

import asyncio
import time
from typing import Any

from extender.state.node_rows import TIMES, NodeRows
from tests.extender.conftest import World
from vgpu.domain.identifiers import NodeName
from vgpu.placement.models import Models


def judged(world: World) -> int:
    """Return the version of the index up to which the last request is judged."""
    known = world.verbs.node_filter._judge._known
    return next(reversed(known.values())).version


def ranked(world: World) -> int:
    """Return the version of the index up to which the last pod's costs are computed."""
    ranking: Any = world.cluster.ranking
    costs = next(iter(ranking._kept.values())).__self__
    version: int = next(reversed(costs._known._known.values()))[0]
    return version


async def bind_another(world: World) -> int:
    """Bind a pod without asking filter, and return the version of the index when its row is written."""
    before = world.cluster.rows.index.version
    pod = await world.create_pod(gpu_mem=256)
    assert await world.bind(pod) == ""
    await world.until_bound_is_watched(pod)
    await world.until(lambda: world.cluster.rows.index.version > before and not world.cluster.rows.waiting)
    return world.cluster.rows.index.version


async def test_the_last_question_of_a_verb_is_answered_again_a_few_times() -> None:
    answered = list[str]()
    rows = NodeRows(lambda _: None, time.monotonic, Models())
    for question in ("a", "b"):
        rows.asked("filter", lambda question=question: answered.append(question))  # type: ignore[misc]
    running = asyncio.create_task(rows.run())
    for _ in range(TIMES + 2):
        rows.mark(NodeName("n1"))
        for _ in range(4):
            await asyncio.sleep(0)
    running.cancel()
    assert answered == ["b"] * TIMES


async def test_the_next_call_finds_changed_nodes_judged(world: World) -> None:
    pod = await world.create_pod()
    await world.filter(pod)
    await world.prioritize(pod, "n1", "n2")
    version = await bind_another(world)
    await world.until(lambda: judged(world) == version)
    await world.until(lambda: ranked(world) == version)


async def test_what_nobody_asks_any_more_is_not_answered(world: World) -> None:
    pod = await world.create_pod()
    await world.filter(pod)
    for _ in range(TIMES + 1):
        version = await bind_another(world)
    assert judged(world) < version
    await world.filter(pod)
    assert judged(world) == version


async def test_nothing_is_prepared_from_rows_that_are_old() -> None:
    """A node that goes away between the writing and the preparation has no state any more."""
    written, waiting = list[str](), list[int]()

    def row(name: NodeName) -> None:
        written.append(name)
        if name == "n1":
            asyncio.get_running_loop().call_soon(rows.mark, NodeName("n2"))

    rows = NodeRows(row, time.monotonic, Models())
    rows.asked("filter", lambda: waiting.append(rows.waiting))
    running = asyncio.create_task(rows.run())
    await asyncio.sleep(0)
    rows.mark(NodeName("n1"))
    async with asyncio.timeout(10):
        while not waiting:
            await asyncio.sleep(0)
    running.cancel()
    assert (written, waiting) == (["n1", "n2"], [0])
