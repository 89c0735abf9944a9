"""What a container asks of a card, and the lowest of what the containers of one job ask, beside a naive twin."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from tests.arbiter.simulation import Demand, demand

FIXED, BURST, BEST_EFFORT = range(3)  # enum compute_policy
FROM_STRONG_TO_WEAK = [BURST, FIXED, BEST_EFFORT]  # beyond its guarantee a fixed share has less than burst


def values(of: Demand) -> tuple[int, int, int, int]:
    return of.policy, of.guarantee, of.weight, of.priority


POLICIES = {FIXED: "fixed", BURST: "burst", BEST_EFFORT: "best-effort"}
demands = st.builds(
    lambda policy, cores, priority: demand(cores, POLICIES[policy], priority),
    st.sampled_from(FROM_STRONG_TO_WEAK),
    st.integers(0, 99),
    st.integers(0, 100),
)


def naive_lowest(one: Demand, other: Demand) -> tuple[int, int, int, int]:
    both = [values(one), values(other)]
    policy = max((values[0] for values in both), key=FROM_STRONG_TO_WEAK.index)
    guarantee, weight, priority = (min(values[field] for values in both) for field in (1, 2, 3))
    return policy, 0 if policy == BEST_EFFORT else guarantee, weight, priority


@given(demands, demands)
def test_a_jobs_container_has_the_lowest_of_what_its_containers_ask(
    pure: ctypes.CDLL, one: Demand, other: Demand
) -> None:
    lowered = Demand(*values(one))
    pure.demand_lower(ctypes.byref(lowered), ctypes.byref(other))
    assert values(lowered) == naive_lowest(one, other)
    again = Demand(*values(other))
    pure.demand_lower(ctypes.byref(again), ctypes.byref(one))
    assert values(again) == values(lowered), "it does not matter which container was first"
