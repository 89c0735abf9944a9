"""The pool export rows of a region against an oracle in Python: memory without an exporter is charged to the card."""

import ctypes
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.limiter.conftest import region_bytes
from tests.limiter.region.test_account import GPUS, U64, identity
from vgpu.domain.formats import limits, region
from vgpu.domain.identifiers import CardUuid

MAKER, IMPORTER = 1, 2
ROWS = 512
PIDS = st.integers(1, 4)
POOLS = st.integers(1, 2)


class Row(ctypes.Structure):
    _fields_ = (
        *((name, U64) for name in ("key", "group", "bytes", "pool")),
        *((name, ctypes.c_uint32) for name in ("card", "slot", "kind", "reserved")),
    )


@dataclass(frozen=True, slots=True)
class Share:
    key: int
    pool: int
    pid: int
    kind: int

    @property
    def group(self) -> int:
        """Key of the memory; two pointers share each group."""
        return self.key // 2

    @property
    def gpu(self) -> str:
        return GPUS[self.group % 2]

    @property
    def size(self) -> int:
        return 10 + self.group


class Shares(RuleBasedStateMachine):
    """Random sequences of rows, charges and ends by several processes."""

    pure: ctypes.CDLL

    def __init__(self) -> None:
        super().__init__()
        self.region = ctypes.c_void_p(self.pure.region_anonymous())
        self.rows: set[Share] = set()
        self.held: dict[tuple[int, str], int] = {}

    def teardown(self) -> None:
        self.pure.region_close(self.region)

    def _slot(self, pid: int) -> int:
        return int(self.pure.account_claim_slot(self.region, ctypes.byref(identity(pid))))

    def _card(self, gpu: str) -> int:
        return int(self.pure.account_find_or_add_card(self.region, limits.uuid_bytes(CardUuid(gpu))))

    def _orphaned(self, gpu: str) -> int:
        made = {row.group for row in self.rows if row.kind == MAKER}
        taken = {(row.group, row.size) for row in self.rows if row.kind == IMPORTER and row.gpu == gpu}
        return sum(size for group, size in taken if group not in made)

    def _release(self, pid: int, gpu: str, size: int) -> None:
        self.held[pid, gpu] = max(0, self.held.get((pid, gpu), 0) - size)

    @rule(
        key=st.integers(0, 7),
        pool=POOLS,
        pid=PIDS,
        kind=st.sampled_from([MAKER, IMPORTER]),
        claimed=st.sampled_from([0, 0, 5]),
    )
    def share(self, key: int, pool: int, pid: int, kind: int, claimed: int) -> None:
        wanted = Share(key, pool, pid, kind)
        row = Row(key, wanted.group, wanted.size, pool, self._card(wanted.gpu), self._slot(pid), kind)
        assert self.pure.account_add_pool_export(self.region, ctypes.byref(row), U64(claimed))
        self.rows.add(wanted)
        self._release(pid, wanted.gpu, claimed)
        found = Row()
        assert self.pure.pool_exports_find(self.region, U64(key), ctypes.byref(found))
        assert (found.key, found.group, found.bytes) == (key, wanted.group, wanted.size)

    @rule(pid=PIDS, gpu=st.sampled_from(GPUS[:2]), size=st.integers(0, 40))
    def reserve(self, pid: int, gpu: str, size: int) -> None:
        """Orphaned memory counts against the limit."""
        limit = 100
        fits = size == 0 or self._used(gpu) + size <= limit
        places = self._slot(pid), self._card(gpu)
        assert self.pure.account_reserve(self.region, *places, U64(size), U64(limit)) == fits
        self.held[pid, gpu] = self.held.get((pid, gpu), 0) + size * fits

    @rule(pid=PIDS, pool=POOLS, gpu=st.sampled_from(GPUS[:2]), size=st.integers(0, 20))
    def end(self, pid: int, pool: int, gpu: str, size: int) -> None:
        self.pure.account_end_pool_exports(self.region, self._slot(pid), U64(pool), self._card(gpu), U64(size))
        self.rows = {row for row in self.rows if (row.pid, row.pool) != (pid, pool)}
        self._release(pid, gpu, size)

    @rule(pid=PIDS)
    def die(self, pid: int) -> None:
        self.pure.account_clear_slot(self.region, self._slot(pid))
        self.rows = {row for row in self.rows if row.pid != pid}
        self.held = {key: size for key, size in self.held.items() if key[0] != pid}

    @rule(pid=PIDS, gpu=st.sampled_from(GPUS[:2]), measured=st.integers(0, 40))
    def measure(self, pid: int, gpu: str, measured: int) -> None:
        """A measurement by another process, which keeps the charge of shared memory."""
        places = self._slot(pid), self._card(gpu)
        calls = U64(self.pure.account_calls(self.region, places[0]))
        assert self.pure.account_reconcile_other(self.region, *places, U64(measured), calls)
        made = {(row.group, row.size) for row in self.rows if (row.kind, row.pid, row.gpu) == (MAKER, pid, gpu)}
        most = measured + sum(size for _, size in made)
        self.held[pid, gpu] = max(measured, min(self.held.get((pid, gpu), 0), most))

    @rule()
    def recompute(self) -> None:
        self.pure.account_recompute(self.region)

    def _used(self, gpu: str) -> int:
        return sum(size for (_, card), size in self.held.items() if card == gpu) + self._orphaned(gpu)

    @invariant()
    def card_sums_equal_slots_plus_orphaned_memory(self) -> None:
        seen = region.decode(region_bytes(self.region.value or 0))
        for row in seen.cards:
            assert (row.orphaned_bytes, row.used_bytes) == (self._orphaned(row.gpu), self._used(row.gpu))
            assert row.peak_bytes >= row.used_bytes
        by_process = {(p.pid, gpu): size for p in seen.processes for gpu, size in p.used_bytes}
        assert by_process == {key: size for key, size in self.held.items() if size}


@pytest.mark.heavy
def test_the_rows_agree_with_the_oracle(pure: ctypes.CDLL) -> None:
    Shares.pure = pure
    run_state_machine_as_test(Shares, settings=settings(max_examples=100, stateful_step_count=15, deadline=None))


def test_a_full_table_refuses_further_rows(pure: ctypes.CDLL, place: ctypes.c_void_p) -> None:
    added = [
        pure.account_add_pool_export(place, ctypes.byref(Row(n, n, 1, 1, 0, 0, MAKER)), U64(0)) for n in range(ROWS + 1)
    ]
    assert added == [True] * ROWS + [False]
    assert pure.account_add_pool_export(place, ctypes.byref(Row(5, 5, 1, 1, 0, 0, MAKER)), U64(0))
    pure.account_end_pool_exports(place, 0, U64(1), -1, U64(0))
    assert pure.account_add_pool_export(place, ctypes.byref(Row(ROWS, 5, 1, 1, 0, 0, MAKER)), U64(0))


def test_a_charge_that_moves_to_the_card_is_never_counted_twice(pure: ctypes.CDLL, place: ctypes.c_void_p) -> None:
    """A double count would raise the recorded peak."""
    pure.account_reserve(place, 0, 0, U64(64), U64(100))
    pure.account_add_pool_export(place, ctypes.byref(Row(1, 1, 64, 1, 0, 0, MAKER)), U64(0))
    pure.account_add_pool_export(place, ctypes.byref(Row(1, 1, 64, 1, 0, 1, IMPORTER)), U64(0))
    pure.account_clear_slot(place, 0)
    (card,) = region.decode(region_bytes(place.value or 0)).cards
    assert (card.used_bytes, card.orphaned_bytes, card.peak_bytes) == (64, 64, 64)
    assert not pure.account_reserve(place, 1, 0, U64(37), U64(100))
    pure.account_end_pool_exports(place, 1, U64(1), -1, U64(0))
    (card,) = region.decode(region_bytes(place.value or 0)).cards
    assert (card.used_bytes, card.orphaned_bytes, card.peak_bytes) == (0, 0, 64)


@pytest.mark.parametrize(("measured", "held"), [(0, 64), (20, 84), (70, 96), (200, 200)])
def test_measurements_by_others_keep_the_charge_of_shared_memory(
    pure: ctypes.CDLL, place: ctypes.c_void_p, measured: int, held: int
) -> None:
    """Two pointers into one memory count once."""
    pure.account_reserve(place, 0, 0, U64(96), U64(100))
    for key in (1, 2):
        pure.account_add_pool_export(place, ctypes.byref(Row(key, 1, 64, 1, 0, 0, MAKER)), U64(0))
    calls = U64(pure.account_calls(place, 0))
    assert pure.account_reconcile_other(place, 0, 0, U64(measured), calls)
    assert region.decode(region_bytes(place.value or 0)).cards[0].used_bytes == held
    assert pure.account_reconcile(place, 0, 0, U64(measured), calls, 0)
    assert region.decode(region_bytes(place.value or 0)).cards[0].used_bytes == measured
