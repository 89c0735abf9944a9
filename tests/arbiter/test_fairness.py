"""Random containers with random programs, honest and not, in virtual time: what each was promised it gets."""

import ctypes
from collections.abc import Sequence

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.arbiter.simulation import MS, SECOND, Ask, Inference, Liar, Process, World, ask
from tests.arbiter.test_schedule import LIES

KERNELS = (MS // 2, 2 * MS)
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a simulated history is slow to shrink


def fair(asks: Sequence[Ask], capacity: float) -> list[float]:
    """The naive twin, for programs that never stop: fixed shares first; then each that may burst gets what it was
    guaranteed, or its weight's part of all that is left, whichever is more."""
    fixed = [each.guarantee if each.policy == 0 else 0 for each in asks]
    left, rest = capacity - sum(fixed), [each for each in asks if each.policy != 0]
    level = 0.0
    while rest and sum(max(each.guarantee, level * each.weight) for each in rest) < left:
        level += 0.001
    return [float(each.guarantee) if each.policy == 0 else max(each.guarantee, level * each.weight) for each in asks]


guarantees = st.lists(st.integers(5, 40), min_size=1, max_size=5).filter(lambda cores: sum(cores) <= 90)


@settings(max_examples=12, phases=NO_SHRINKING)
@given(
    guarantees.flatmap(
        lambda all_cores: st.tuples(
            *(st.builds(ask, st.just(cores), st.sampled_from(("fixed", "burst"))) for cores in all_cores)
        )
    ),
    st.integers(0, 2),
    st.sampled_from(KERNELS),
)
def test_shares_equal_those_of_the_oracle(
    pure: ctypes.CDLL, guaranteed: tuple[Ask, ...], unlimited: int, kernel: int
) -> None:
    asks = (*guaranteed, *[ask()] * unlimited)
    with World(pure) as world:
        for each in asks:
            Process(world, world.tenant(each), kernel)
        world.run(SECOND)
        got = world.shares(3 * SECOND)
    for each, share, expected in zip(asks, got, fair(asks, sum(got)), strict=True):
        assert abs(share - expected) <= (1 if each.policy == 0 else 4)


@settings(max_examples=12, phases=NO_SHRINKING)
@example(cores=[16, 35], lies=[("never ends, and is idle", 1), ("ends, and does not", 17)], unlimited=0, quick=True)
@given(
    guarantees,
    st.lists(st.tuples(st.sampled_from(sorted(LIES)), st.integers(0, 20)), max_size=3),
    st.integers(0, 2),
    st.booleans(),
)
def test_a_tenant_gets_its_guarantee_beside_any_other_clients(
    pure: ctypes.CDLL, cores: list[int], lies: list[tuple[str, int]], unlimited: int, quick: bool
) -> None:
    cores = [each * 60 // max(60, sum(cores)) for each in cores]  # room for the liars, and for what their turns cost
    with World(pure) as world:
        for each in cores:
            Process(world, world.tenant(ask(each)))
        for lie, guarantee in lies:
            Liar(world, world.tenant(ask(guarantee * 20 // max(20, sum(each for _, each in lies)))), *LIES[lie])
        for _ in range(unlimited):
            Process(world, world.tenant(ask()))
        if quick:
            Inference(world, world.tenant(ask(5)))
        world.run(4 * SECOND)  # by then the patience with liars is used up, a quarter of a second for each
        got = world.shares(3 * SECOND)
    assert all(share >= each - 1.5 for share, each in zip(got, cores, strict=False))


@settings(max_examples=12, phases=NO_SHRINKING)
@given(
    st.lists(st.builds(ask, st.integers(0, 15), st.sampled_from(("fixed", "burst", "best-effort"))), max_size=5),
    st.sampled_from(KERNELS),
)
def test_the_card_is_not_idle_while_an_unlimited_tenant_waits(pure: ctypes.CDLL, asks: list[Ask], kernel: int) -> None:
    """One without limits always wants: nothing is lost but handovers, of 0.2 ms in 3 at most."""
    with World(pure) as world:
        for each in (*asks, ask()):
            Process(world, world.tenant(each), kernel)
        world.run(SECOND)
        assert sum(world.shares(2 * SECOND)) >= 90
