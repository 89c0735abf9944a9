"""What a container asks of a card, and the lowest of what the containers of one job ask, beside a naive twin."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

FIXED, BURST, BEST_EFFORT = range(3)  # enum compute_policy
FROM_STRONG_TO_WEAK = [BURST, FIXED, BEST_EFFORT]  # beyond its guarantee a fixed share has less than burst


class Demand(ctypes.Structure):
    _fields_ = (
        ("policy", ctypes.c_int),
        ("guarantee", ctypes.c_uint32),
        ("weight", ctypes.c_uint32),
        ("priority", ctypes.c_uint32),
        ("is_group", ctypes.c_bool),
    )

    def values(self) -> tuple[int, int, int, int]:
        return self.policy, self.guarantee, self.weight, self.priority


def demand(policy: int, cores: int, priority: int) -> Demand:
    guarantee = 0 if policy == BEST_EFFORT else cores
    return Demand(BURST if policy == FIXED and not cores else policy, guarantee, cores or 1, priority)


demands = st.builds(demand, st.sampled_from(FROM_STRONG_TO_WEAK), st.integers(0, 99), st.integers(0, 100))


def naive_lowest(one: Demand, other: Demand) -> tuple[int, int, int, int]:
    both = [one.values(), other.values()]
    policy = max((values[0] for values in both), key=FROM_STRONG_TO_WEAK.index)
    guarantee, weight, priority = (min(values[field] for values in both) for field in (1, 2, 3))
    return policy, 0 if policy == BEST_EFFORT else guarantee, weight, priority


@given(demands, demands)
def test_a_jobs_container_has_the_lowest_of_what_its_containers_ask(
    pure: ctypes.CDLL, one: Demand, other: Demand
) -> None:
    lowered = Demand(*one.values())
    pure.demand_lower(ctypes.byref(lowered), ctypes.byref(other))
    assert lowered.values() == naive_lowest(one, other)
    again = Demand(*other.values())
    pure.demand_lower(ctypes.byref(again), ctypes.byref(one))
    assert again.values() == lowered.values(), "it does not matter which container was first"
