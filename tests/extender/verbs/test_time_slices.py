"""One filter call neither holds the event loop for long nor fills the memory, whatever a pod asks for."""

from typing import Any

from extender.index.answer import IndexAnswer
from extender.state.objects import WatchedLease
from extender.state.pod_reader import PodReader
from extender.verbs.filter import BUDGET_S, NODES_PER_CLOCK_READ, SLICE_S
from extender.verbs.placement_cache import MAX_GRANTS, PlacementCache
from tests import strategies
from tests.extender.conftest import World
from vgpu.domain import names as names_of
from vgpu.domain.asks import request
from vgpu.domain.asks.policy import PackingPolicy
from vgpu.domain.asks.request import PodRequest
from vgpu.domain.cards.reasons import UNRESOLVABLE, Reason
from vgpu.domain.cards.share import NodeState
from vgpu.domain.identifiers import NodeName


class Pauses:
    """Counts the pauses, which take no time."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, seconds: float) -> None:
        assert seconds == 0
        self.count += 1


def pod() -> Any:
    """Return a pod that is placed exactly, on each node."""
    two = (strategies.container(name, gpu_mem=1024) for name in "ab")
    return PodReader().decoded(strategies.admit(strategies.pod(*two)))


async def judged(world: World, seconds_per_node: float, names: list[NodeName]) -> tuple[IndexAnswer, int]:
    """Judge with a clock that advances for each node."""
    await world.cluster.index(Pauses())
    usable, pauses = world.cluster.states.usable, Pauses()

    def slow(name: NodeName) -> NodeState | Reason:
        world.clock.seconds += seconds_per_node
        return usable(name)

    setattr(world.cluster.states, "usable", slow)  # noqa: B010 - a method, which mypy lets nobody assign
    world.cluster.leases.put(WatchedLease(names_of.node_lease(NodeName("n1")), "n1", "later", 1000))
    return await world.verbs.node_filter.judge(pod(), names, pauses), pauses.count


async def test_the_answer_is_the_same_in_slices(world: World) -> None:
    names = [NodeName("n1")] * 4 * NODES_PER_CLOCK_READ
    answer, pauses = await judged(world, SLICE_S * 1.01, names)
    assert (answer.fitting(), answer.reasons, pauses) == ([b'"n1"'] * len(names), {}, 3)


async def test_a_quick_call_has_no_pause(world: World) -> None:
    assert (await judged(world, 0, [NodeName("n1")] * 1000))[1] == 0


async def test_nodes_beyond_the_time_are_refused_for_now(world: World) -> None:
    names = [NodeName("n1")] * (3 * NODES_PER_CLOCK_READ + 3)
    answer, _ = await judged(world, BUDGET_S / (2.5 * NODES_PER_CLOCK_READ), names)
    assert len(answer.fitting()) == 3 * NODES_PER_CLOCK_READ
    assert answer.reasons == {Reason.NOT_JUDGED: 3}
    assert Reason.NOT_JUDGED not in UNRESOLVABLE


def test_the_cache_holds_few_placements_of_large_requests() -> None:
    cache = PlacementCache()

    def wanted(mib: int) -> PodRequest:
        made = (strategies.container(f"c{n}", gpu_mem=mib) for n in range(32))
        found = request.parse(strategies.pod(*made)).request
        assert found is not None
        return found

    for mib in range(1, 20):
        nodes: dict[str, Any] = cache.for_request(wanted(mib), PackingPolicy.BINPACK)._placements
        nodes.update(dict.fromkeys(f"n{n}" for n in range(5000)))
    assert cache._grants() <= MAX_GRANTS + 32 * 5000
    assert len(cache._placements) <= 3
