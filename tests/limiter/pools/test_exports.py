"""Lost memory of exported pools, against an oracle that records what each step of the pool's addresses holds."""

import ctypes

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

STEP = 32 << 20
U64 = ctypes.c_uint64
POOLS = st.integers(1, 2)
PLACES = st.integers(1, 5)


class Exported(RuleBasedStateMachine):
    """Random exports of two pools. A place is a quarter of a step in the pool's address range."""

    pure: ctypes.CDLL

    def __init__(self) -> None:
        super().__init__()
        self.pure.fork_forget_all()
        self.living: dict[int, tuple[int, int]] = {}  # by address: size and pool
        self.steps: dict[int, tuple[int, bool]] = {}  # pool, and whether it is lost

    def _address(self, pool: int, place: int) -> int:
        return 64 * STEP * pool + place * STEP // 4

    def _held(self) -> set[int]:
        return {step for address, (size, _) in self.living.items() for step in _steps(address, size)}

    @rule(pool=POOLS, place=PLACES, quarters=st.integers(1, 9))
    def export(self, pool: int, place: int, quarters: int) -> None:
        address, size = self._address(pool, place), quarters * STEP // 4
        assert self.pure.exports_add(U64(pool), U64(address), U64(size))
        assert self.pure.exports_any()
        self.living[address] = (size, pool)
        self.steps |= dict.fromkeys(_steps(address, size), (pool, False))

    @rule(pool=POOLS, place=PLACES)
    def free(self, pool: int, place: int) -> None:
        """Frees a random address, which need not be exported."""
        self.pure.exports_free(U64(self._address(pool, place)))
        self.living.pop(self._address(pool, place), None)

    @rule(pool=POOLS, steps=st.integers(0, 9), odd=st.booleans())
    def shrink(self, pool: int, steps: int, *, odd: bool) -> None:
        """Loses `steps` free steps, then all. In between only the sum is compared: the C code may choose which."""
        free = [step for step, (of, lost) in self.steps.items() if of == pool and not lost and step not in self._held()]
        before = self.pure.exports_lost_bytes(U64(pool))
        self.pure.exports_shrink(U64(pool), U64(max(0, steps * STEP - odd)))
        assert self.pure.exports_lost_bytes(U64(pool)) == before + min(steps, len(free)) * STEP
        self.pure.exports_shrink(U64(pool), U64(len(free) * STEP))
        self.steps |= dict.fromkeys(free, (pool, True))

    @rule(pool=POOLS)
    def end(self, pool: int) -> None:
        self.pure.exports_end_pool(U64(pool))
        self.living = {address: held for address, held in self.living.items() if held[1] != pool}
        self.steps = {step: held for step, held in self.steps.items() if held[0] != pool}

    @invariant()
    def lost_steps_equal_the_oracle(self) -> None:
        for pool in (1, 2):
            lost = [is_lost for of, is_lost in self.steps.values() if of == pool]
            assert self.pure.exports_bytes(U64(pool)) == len(lost) * STEP
            assert self.pure.exports_lost_bytes(U64(pool)) == sum(lost) * STEP


def _steps(address: int, size: int) -> range:
    return range(address // STEP, (address + size - 1) // STEP + 1)


@pytest.mark.heavy
def test_lost_memory_agrees_with_the_oracle(pure: ctypes.CDLL) -> None:
    for name in ("exports_lost_bytes", "exports_bytes"):
        getattr(pure, name).restype = U64
    for name in ("exports_add", "exports_any"):
        getattr(pure, name).restype = ctypes.c_bool
    Exported.pure = pure
    run_state_machine_as_test(Exported, settings=settings(max_examples=100, stateful_step_count=15, deadline=None))
