"""Random containers with random programs and false clients, in virtual time: shares equal those of an oracle."""

import ctypes
from collections.abc import Sequence

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.arbiter.simulation import MS, SECOND, Demand, FalseClient, Inference, Process, World, demand
from tests.arbiter.test_schedule import BEHAVIOURS

pytestmark = pytest.mark.heavy


KERNELS = (MS // 2, 2 * MS)
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a simulated history is slow to shrink


def oracle_shares(demands: Sequence[Demand], capacity: float) -> list[float]:
    """Shares of continuous loads: fixed shares first; the remaining time is divided among burst tenants by weight, but
    none gets less than its guarantee."""
    fixed = [asked.guarantee if asked.policy == 0 else 0 for asked in demands]
    left, rest = capacity - sum(fixed), [asked for asked in demands if asked.policy != 0]
    level = 0.0
    while rest and sum(max(asked.guarantee, level * asked.weight) for asked in rest) < left:
        level += 0.001
    return [
        float(asked.guarantee) if asked.policy == 0 else max(asked.guarantee, level * asked.weight) for asked in demands
    ]


guarantees = st.lists(st.integers(5, 40), min_size=1, max_size=5).filter(lambda cores: sum(cores) <= 90)


@settings(max_examples=12, phases=NO_SHRINKING)
@given(
    guarantees.flatmap(
        lambda all_cores: st.tuples(
            *(st.builds(demand, st.just(cores), st.sampled_from(("fixed", "burst"))) for cores in all_cores)
        )
    ),
    st.integers(0, 2),
    st.sampled_from(KERNELS),
)
def test_shares_equal_those_of_the_oracle(
    pure: ctypes.CDLL, guaranteed: tuple[Demand, ...], unlimited: int, kernel: int
) -> None:
    demands = (*guaranteed, *[demand()] * unlimited)
    with World(pure) as world:
        for asked in demands:
            Process(world, world.tenant(asked), kernel)
        world.run(SECOND)
        got = world.shares(3 * SECOND)
    for asked, share, expected in zip(demands, got, oracle_shares(demands, sum(got)), strict=True):
        assert abs(share - expected) <= (1 if asked.policy == 0 else 5)


@pytest.mark.heavy
@settings(max_examples=12, phases=NO_SHRINKING)
@example(
    cores=[16, 35], behaviours=[("never ends, and is idle", 1), ("announces long work", 17)], unlimited=0, quick=True
)
@given(
    guarantees,
    st.lists(st.tuples(st.sampled_from(sorted(BEHAVIOURS)), st.integers(0, 20)), max_size=3),
    st.integers(0, 2),
    st.booleans(),
)
def test_a_tenant_gets_its_guarantee_beside_any_other_clients(
    pure: ctypes.CDLL, cores: list[int], behaviours: list[tuple[str, int]], unlimited: int, quick: bool
) -> None:
    cores = [
        percent * 60 // max(60, sum(cores)) for percent in cores
    ]  # leaves room for the false clients and the cost of their turns
    with World(pure) as world:
        for percent in cores:
            Process(world, world.tenant(demand(percent)))
        for behaviour, guarantee in behaviours:
            FalseClient(
                world,
                world.tenant(demand(guarantee * 20 // max(20, sum(asked for _, asked in behaviours)))),
                *BEHAVIOURS[behaviour],
            )
        for _ in range(unlimited):
            Process(world, world.tenant(demand()))
        if quick:
            Inference(world, world.tenant(demand(5)))
        world.run(4 * SECOND)  # after which the overrun budgets, 250 ms for each false client, are used up
        got = world.shares(3 * SECOND)
    assert all(share >= percent - 1.5 for share, percent in zip(got, cores, strict=False))


@settings(max_examples=12, phases=NO_SHRINKING)
@given(
    st.lists(st.builds(demand, st.integers(0, 15), st.sampled_from(("fixed", "burst", "best-effort"))), max_size=5),
    st.sampled_from(KERNELS),
)
def test_the_card_is_not_idle_while_an_unlimited_tenant_waits(
    pure: ctypes.CDLL, demands: list[Demand], kernel: int
) -> None:
    """An unlimited tenant always waits, so only handovers are lost: at most 0.2 ms of 3 ms."""
    with World(pure) as world:
        for asked in (*demands, demand()):
            Process(world, world.tenant(asked), kernel)
        world.run(SECOND)
        assert sum(world.shares(2 * SECOND)) >= 90
