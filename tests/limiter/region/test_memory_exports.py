"""The rows of exported memory: whatever the order of ends and measurements, held memory is charged, and then once."""

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.limiter.conftest import region_bytes
from tests.limiter.region.test_account import GPUS, U64, identity
from vgpu.domain.formats import limits, region

EXPORTER, IMPORTER = 1, 2
ROWS = 4096
ROWS_AT = 762112 + 8
CARD_AT, USED, ORPHANED = 256, 16, 64  # of the first card in a region, and of fields in its row
PIDS = st.integers(1, 4)
GROUPS = st.integers(1, 3)


class Row(ctypes.Structure):
    _fields_ = (
        *((name, U64) for name in ("key", "group", "bytes")),
        *((name, ctypes.c_uint32) for name in ("card", "slot", "role", "state", "references", "reserved")),
    )


def size_of(group: int) -> int:
    return int(10**group)


class Exports(RuleBasedStateMachine):
    """Processes that export, import, close, free, end and are measured, beside what is really held of one card.

    NVML counts memory for its exporter while that one lives, else for the living importer with the lowest pid.
    """

    pure: ctypes.CDLL

    def __init__(self) -> None:
        super().__init__()
        self.region = ctypes.c_void_p(self.pure.region_anonymous())
        self.card = self.pure.account_find_or_add_card(self.region, limits.uuid_bytes(GPUS[0]))
        self.exporter: dict[int, int] = {}
        self.importers: dict[int, list[int]] = {}  # by group, a pid for each reference
        self.dead: set[int] = set()
        self.is_measured = False

    def teardown(self) -> None:
        self.pure.region_close(self.region)

    def _slot(self, pid: int) -> int:
        return int(self.pure.account_claim_slot(self.region, ctypes.byref(identity(pid))))

    def _row(self, pid: int, group: int, role: int) -> Row:
        return Row(group, group, size_of(group), self.card, self._slot(pid), role)

    def _add(self, row: Row) -> None:
        assert self.pure.account_add_memory_export(self.region, ctypes.byref(row))

    def _holders(self, group: int) -> list[int]:
        exporters = [self.exporter[group]] if group in self.exporter else []
        return [pid for pid in (*exporters, *sorted(self.importers.get(group, []))) if pid not in self.dead]

    def _held(self) -> int:
        return sum(size_of(group) for group in range(1, 4) if self._holders(group))

    def _nvml(self, pid: int) -> int:
        return sum(size_of(group) for group in range(1, 4) if self._holders(group)[:1] == [pid])

    def _charged(self) -> tuple[int, int]:
        """What is charged on the card, and the orphaned part of it; decoding whole regions takes too long here."""
        row = (self.region.value or 0) + CARD_AT
        return U64.from_address(row + USED).value, U64.from_address(row + ORPHANED).value

    @rule(pid=PIDS, group=GROUPS)
    def export(self, pid: int, group: int) -> None:
        is_held = group in self.exporter or self.importers.get(group)
        if pid in self.dead or (is_held and self.exporter.get(group) != pid):
            return
        if group not in self.exporter:
            assert self.pure.account_reserve(self.region, self._slot(pid), self.card, U64(size_of(group)), U64(10**9))
        self.exporter[group] = pid
        self._add(self._row(pid, group, EXPORTER))

    @rule(pid=PIDS, group=GROUPS)
    def take(self, pid: int, group: int) -> None:
        if pid in self.dead or not self._holders(group) or self.exporter.get(group) == pid:
            return
        self._add(self._row(pid, group, IMPORTER))
        self.importers.setdefault(group, []).append(pid)

    @rule(pid=PIDS, group=GROUPS)
    def close(self, pid: int, group: int) -> None:
        if pid in self.dead or pid not in self.importers.get(group, []):
            return
        self.importers[group].remove(pid)
        self.pure.account_drop_memory_import(self.region, self._slot(pid), U64(group))

    @rule(group=GROUPS)
    def free(self, group: int) -> None:
        pid = self.exporter.get(group)
        if pid is None or pid in self.dead:
            return
        del self.exporter[group]
        size = U64(size_of(group))
        self.pure.account_end_memory_export(self.region, self._slot(pid), U64(group), self.card, size)

    @rule(pid=PIDS)
    def die(self, pid: int) -> None:
        """The kernel has ended the process; its slot is cleared later."""
        self._slot(pid)
        self.dead.add(pid)

    @rule(pid=PIDS)
    def clear(self, pid: int) -> None:
        if pid not in self.dead:
            return
        self.pure.account_clear_slot(self.region, self._slot(pid))
        self.dead.discard(pid)
        self.exporter = {group: owner for group, owner in self.exporter.items() if owner != pid}
        self.importers = {group: [i for i in pids if i != pid] for group, pids in self.importers.items()}

    @rule(pid=PIDS, by_itself=st.booleans())
    def measure(self, pid: int, by_itself: bool) -> None:
        if pid in self.dead or not self._nvml(pid):  # NVML lists only processes with a context, and others keep theirs
            return
        self.is_measured = True
        place = self._slot(pid), self.card, U64(self._nvml(pid))
        calls = U64(self.pure.account_calls(self.region, place[0]))
        if by_itself:
            assert self.pure.account_reconcile(self.region, *place, calls, 0)
        else:
            assert self.pure.account_reconcile_other(self.region, *place, calls)

    @rule()
    def recompute(self) -> None:
        self.pure.account_recompute(self.region)

    @rule()
    def reconcile(self) -> None:
        """Every ended process is cleared and every other one measured."""
        self.is_measured = True
        for pid in range(1, 5):
            self.clear(pid)
        for pid in range(1, 5):
            calls = U64(self.pure.account_calls(self.region, self._slot(pid)))
            self.pure.account_reconcile(self.region, self._slot(pid), self.card, U64(self._nvml(pid)), calls, 0)
        assert self._charged() == (self._held(), 0)

    @invariant()
    def held_memory_is_charged(self) -> None:
        used, _ = self._charged()
        assert used >= self._held()
        if not self.is_measured and not self.dead:
            assert used == self._held()


@pytest.mark.heavy
def test_held_memory_is_charged_and_after_measurements_once(pure: ctypes.CDLL) -> None:
    Exports.pure = pure
    run_state_machine_as_test(Exports, settings=settings(max_examples=200, stateful_step_count=15, deadline=None))


def added(pure: ctypes.CDLL, place: ctypes.c_void_p, row: Row) -> bool:
    return bool(pure.account_add_memory_export(place, ctypes.byref(row)))


def test_a_full_table_refuses_further_rows_until_one_ends(pure: ctypes.CDLL, place: ctypes.c_void_p) -> None:
    rows = [Row(group, group, 1, 0, 0, EXPORTER) for group in range(1, ROWS + 2)]
    assert [added(pure, place, row) for row in rows] == [True] * ROWS + [False]
    assert added(pure, place, rows[5])
    pure.account_end_memory_export(place, 0, U64(7), -1, U64(0))
    assert added(pure, place, rows[-1])


def test_a_full_table_is_summed_by_groups(pure: ctypes.CDLL, place: ctypes.c_void_p) -> None:
    for group in range(1, ROWS + 1):
        assert added(pure, place, Row(group, group // 2 + 1, 3, 0, group % 2, IMPORTER))
    (card,) = region.decode(region_bytes(place.value or 0)).cards
    assert card.used_bytes == card.orphaned_bytes == 3 * (ROWS // 2 + 1)
    pure.account_clear_slot(place, 0)
    pure.account_clear_slot(place, 1)
    (card,) = region.decode(region_bytes(place.value or 0)).cards
    assert card.used_bytes == card.orphaned_bytes == 0


@pytest.mark.heavy
def test_threads_that_sum_different_regions_do_not_disturb_each_other(pure: ctypes.CDLL) -> None:
    """The region's lock guards the region and nothing else, so a sum needs no memory that other threads use."""

    def sums(size: int) -> set[int]:
        place = ctypes.c_void_p(pure.region_anonymous())
        pure.account_find_or_add_card(place, limits.uuid_bytes(GPUS[0]))
        for group in range(1, 301):
            assert added(pure, place, Row(group, group, size, 0, 0, IMPORTER))
        found = set()
        for _ in range(3000):
            pure.account_recompute(place)
            found.add(U64.from_address((place.value or 0) + CARD_AT + USED).value)
        pure.region_close(place)
        return found

    with ThreadPoolExecutor() as threads:
        assert list(threads.map(sums, range(1, 5))) == [{300 * size} for size in range(1, 5)]


def test_the_move_of_a_charge_is_never_counted_twice(pure: ctypes.CDLL, place: ctypes.c_void_p) -> None:
    """A double count would raise the recorded peak."""
    pure.account_reserve(place, 0, 0, U64(64), U64(100))
    assert added(pure, place, Row(1, 1, 64, 0, 0, EXPORTER))
    assert added(pure, place, Row(1, 1, 64, 0, 1, IMPORTER))
    pure.account_clear_slot(place, 0)
    calls = U64(pure.account_calls(place, 1))
    assert pure.account_reconcile(place, 1, 0, U64(64), calls, 0)
    (card,) = region.decode(region_bytes(place.value or 0)).cards
    assert (card.used_bytes, card.orphaned_bytes, card.peak_bytes) == (64, 0, 64)


@pytest.mark.parametrize("seed", range(5))
def test_any_bytes_in_the_table_end_every_sum(pure: ctypes.CDLL, place: ctypes.c_void_p, seed: int) -> None:
    """The container's processes can write anything into the region."""
    chance = random.Random(seed)
    table = chance.randbytes(8 + ROWS * ctypes.sizeof(Row))
    if seed:  # few groups, valid roles and cards
        rows = [
            Row(chance.randrange(9), chance.randrange(3), 2**63, chance.randrange(2), chance.randrange(3), 1 + seed % 2)
            for _ in range(ROWS)
        ]
        table = b"\xff" * 8 + b"".join(map(bytes, rows))
    ctypes.memmove((place.value or 0) + ROWS_AT - 8, table, len(table))
    pure.account_recompute(place)
    for slot in (0, 1):
        calls = U64(pure.account_calls(place, slot))
        assert pure.account_reconcile_other(place, slot, 0, U64(5), calls)
        pure.account_drop_memory_import(place, slot, U64(1))
        pure.account_clear_slot(place, slot)
    assert region.decode(region_bytes(place.value or 0)).cards[0].gpu == GPUS[0]
