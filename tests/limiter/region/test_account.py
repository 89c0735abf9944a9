"""The charges of `region/account.c` against an oracle in Python, and the region's lock and dead processes."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.limiter.conftest import region_bytes
from vgpu.domain.formats import limits, region
from vgpu.domain.identifiers import CardUuid

U64 = ctypes.c_uint64
GPUS = [limits.uuid_text(bytes([n]) * 16) for n in (1, 2, 3)]


class Identity(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint32), ("start_time", U64), ("namespace", U64))


def identity(pid: int) -> Identity:
    return Identity(pid, pid * 10, 77)


class Accounts(RuleBasedStateMachine):
    """Random sequences of reserve, release, reconcile and clear by several processes."""

    pure: ctypes.CDLL

    def __init__(self) -> None:
        super().__init__()
        self.region = ctypes.c_void_p(self.pure.region_anonymous())
        self.held: dict[tuple[int, str], int] = {}
        self.managed: dict[tuple[int, str], int] = {}
        self.refusals = 0

    def teardown(self) -> None:
        self.pure.region_close(self.region)

    def _places(self, pid: int, gpu: str) -> tuple[int, int]:
        slot = self.pure.account_claim_slot(self.region, ctypes.byref(identity(pid)))
        return slot, self.pure.account_find_or_add_card(self.region, limits.uuid_bytes(CardUuid(gpu)))

    def _used(self, gpu: str) -> int:
        return sum(size for (_, card), size in self.held.items() if card == gpu)

    @rule(
        pid=st.integers(1, 6),
        gpu=st.sampled_from(GPUS),
        size=st.integers(0, 100) | st.integers(2**64 - 50, 2**64 - 1),
        limit=st.integers(0, 300) | st.just(2**64 - 1),
    )
    def reserve(self, pid: int, gpu: str, size: int, limit: int) -> None:
        slot, card = self._places(pid, gpu)
        fits = size == 0 or self._used(gpu) + size <= limit
        assert self.pure.account_reserve(self.region, slot, card, U64(size), U64(limit)) == fits
        if not fits:
            self.pure.account_count_refusal(self.region, card)
            self.refusals += 1
        if fits:
            self.held[pid, gpu] = self.held.get((pid, gpu), 0) + size

    @rule(pid=st.integers(1, 6), gpu=st.sampled_from(GPUS), size=st.integers(0, 200))
    def release(self, pid: int, gpu: str, size: int) -> None:
        slot, card = self._places(pid, gpu)
        self.pure.account_release(self.region, slot, card, U64(size))
        self.held[pid, gpu] = max(0, self.held.get((pid, gpu), 0) - size)

    @rule(
        pid=st.integers(1, 6),
        gpu=st.sampled_from(GPUS),
        measured=st.integers(0, 200),
        before=st.integers(0, 2),
        meanwhile=st.sampled_from(["nothing", "begins", "begins and ends", "ends"]),
        own=st.integers(0, 2),
    )
    def reconcile(self, pid: int, gpu: str, measured: int, before: int, meanwhile: str, own: int) -> None:
        """NVML's figure is applied only if all open calls are the caller's, and no call begins or ends meanwhile."""
        if self._used(gpu) > 2**63:
            return  # above that, sums saturate and differ from the slots
        slot, card = self._places(pid, gpu)
        for _ in range(before):
            self.pure.account_begin_call(self.region, slot)
        calls = U64(self.pure.account_calls(self.region, slot))
        if meanwhile.startswith("begins"):
            self.pure.account_begin_call(self.region, slot)
        if meanwhile.endswith("ends") and (before or "begins" in meanwhile):
            self.pure.account_end_call(self.region, slot)
        same = meanwhile == "nothing" or (meanwhile == "ends" and before == 0)
        applied = self.pure.account_reconcile(self.region, slot, card, U64(measured), calls, own)
        assert applied == (same and before == own)
        if applied:
            self.held[pid, gpu] = measured + self.managed.get((pid, gpu), 0)
        while self.pure.account_calls(self.region, slot) & 0xFFFFFFFF:
            self.pure.account_end_call(self.region, slot)

    @rule(pid=st.integers(1, 6), gpu=st.sampled_from(GPUS), size=st.integers(0, 50))
    def mark_managed(self, pid: int, gpu: str, size: int) -> None:
        slot, card = self._places(pid, gpu)
        self.pure.account_mark_managed(self.region, slot, card, U64(size))
        self.managed[pid, gpu] = self.managed.get((pid, gpu), 0) + size

    @rule(pid=st.integers(1, 6), gpu=st.sampled_from(GPUS), size=st.integers(0, 50))
    def unmark_managed(self, pid: int, gpu: str, size: int) -> None:
        slot, card = self._places(pid, gpu)
        self.pure.account_unmark_managed(self.region, slot, card, U64(size))
        self.managed[pid, gpu] = max(0, self.managed.get((pid, gpu), 0) - size)

    @rule(pid=st.integers(1, 6))
    def clear(self, pid: int) -> None:
        self.pure.account_clear_slot(self.region, self._places(pid, GPUS[0])[0])
        self.held = {key: size for key, size in self.held.items() if key[0] != pid}
        self.managed = {key: size for key, size in self.managed.items() if key[0] != pid}

    @rule()
    def recompute(self) -> None:
        self.pure.account_recompute(self.region)

    @invariant()
    def card_sums_equal_the_slots(self) -> None:
        seen = region.decode(region_bytes(self.region.value or 0))
        assert {row.gpu: row.used_bytes for row in seen.cards} == {row.gpu: self._used(row.gpu) for row in seen.cards}
        assert sum(row.refusals for row in seen.cards) == self.refusals
        by_process = {(p.pid, gpu): size for p in seen.processes for gpu, size in p.used_bytes}
        assert by_process == {key: size for key, size in self.held.items() if size}
        for (pid, gpu), size in self.held.items():
            assert self._of_process(pid, gpu) == size
        assert self._of_process(0, GPUS[0]) is None  # pid 0 marks a free slot

    def _of_process(self, pid: int, gpu: str, namespace: int = 77) -> int | None:
        card, found = self.pure.account_find_or_add_card(self.region, limits.uuid_bytes(CardUuid(gpu))), U64()
        known = self.pure.account_used_by_process(self.region, pid, U64(namespace), card, ctypes.byref(found))
        return found.value if known else None

    @rule(pid=st.integers(1, 6), gpu=st.sampled_from(GPUS))
    def a_process_of_another_namespace_has_no_charge(self, pid: int, gpu: str) -> None:
        self._places(pid, gpu)
        assert self._of_process(pid, gpu, namespace=78) is None
        assert self._of_process(pid, gpu) is not None


@pytest.mark.heavy
def test_the_accounts_agree_with_the_oracle(pure: ctypes.CDLL) -> None:
    Accounts.pure = pure
    run_state_machine_as_test(Accounts, settings=settings(max_examples=60, stateful_step_count=15, deadline=None))


def test_an_anonymous_region_equals_a_new_one_of_python(pure: ctypes.CDLL) -> None:
    place = pure.region_anonymous()
    assert region_bytes(place)[:24] == region.new()[:24]
    assert region.decode(region_bytes(place)).cards == ()


def test_a_full_table_refuses(pure: ctypes.CDLL) -> None:
    place = ctypes.c_void_p(pure.region_anonymous())
    slots = [pure.account_claim_slot(place, ctypes.byref(identity(pid))) for pid in range(1, region.MAX_PROCESSES + 2)]
    assert slots == [*range(region.MAX_PROCESSES), -1]
    cards = [pure.account_find_or_add_card(place, bytes([n]) * 16) for n in range(1, region.MAX_CARDS + 2)]
    assert cards == [*range(region.MAX_CARDS), -1]
    assert not pure.account_reserve(place, -1, 0, U64(1), U64(9))
    assert not pure.account_reserve(place, 0, -1, U64(1), U64(9))


def make_file(folder: Path) -> Path:
    path = folder / "region"
    path.write_bytes(region.new())
    os.truncate(path, region.SIZE)
    return path


@pytest.mark.parametrize("spoil", [b"XGPUREGN", b"VGPUREGN\x01"])
def test_a_file_that_is_no_region_is_not_opened(pure: ctypes.CDLL, tmp_path: Path, spoil: bytes) -> None:
    path = make_file(tmp_path)
    with path.open("r+b") as file:
        file.write(spoil)
    assert pure.region_open(str(path).encode()) is None
    path.write_bytes(region.new())
    assert pure.region_open(str(path).encode()) is None


HOLDER = """
import ctypes, sys, time
pure = ctypes.CDLL(sys.argv[1])
pure.region_open.restype = ctypes.c_void_p
region = ctypes.c_void_p(pure.region_open(sys.argv[2].encode()))
print(pure.region_lock(region, 1000), flush=True)
time.sleep(60)
"""


def start_holder(pure: ctypes.CDLL, path: Path) -> subprocess.Popen[bytes]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, pure._name, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"0\n"
    return holder


def test_after_the_lock_holder_is_killed_the_next_one_recomputes_the_sums(pure: ctypes.CDLL, tmp_path: Path) -> None:
    path = make_file(tmp_path)
    place = ctypes.c_void_p(pure.region_open(str(path).encode()))
    slot = pure.account_claim_slot(place, ctypes.byref(identity(5)))
    card = pure.account_find_or_add_card(place, limits.uuid_bytes(GPUS[0]))
    pure.account_reserve(place, slot, card, U64(30), U64(100))
    holder = start_holder(pure, path)
    # The holder died after it had updated its slot and before it updated the card's sum.
    ctypes.cast((place.value or 0) + 256 + 16, ctypes.POINTER(U64))[0] = 99
    with holder:
        holder.kill()
    assert pure.region_lock(place, 1000) == 0
    pure.region_unlock(place)
    seen = region.decode(path.read_bytes())
    assert (seen.cards[0].used_bytes, seen.recoveries) == (30, 1)
    pure.region_close(place)


def test_slots_that_are_free_again_are_not_scanned(pure: ctypes.CDLL) -> None:
    place = ctypes.c_void_p(pure.region_anonymous())
    slots = [pure.account_claim_slot(place, ctypes.byref(identity(pid))) for pid in range(1, 9)]
    for slot in (slots[2], *slots[4:]):
        pure.account_clear_slot(place, slot)
    assert pure.account_slots(place) == 4
    assert pure.account_claim_slot(place, ctypes.byref(identity(20))) == 2
    for slot in slots[:4]:
        pure.account_clear_slot(place, slot)
    assert pure.account_slots(place) == 0


def test_waiting_for_a_stopped_lock_holder_times_out(pure: ctypes.CDLL, tmp_path: Path) -> None:
    path = make_file(tmp_path)
    place = ctypes.c_void_p(pure.region_open(str(path).encode()))
    with start_holder(pure, path) as holder:
        holder.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        assert pure.region_lock(place, 50) < 0
        assert 0.04 < time.monotonic() - begun < 1
        holder.kill()
    assert region.decode(path.read_bytes()).timeouts == 1
    pure.region_close(place)


def test_dead_processes_are_recognised(pure: ctypes.CDLL) -> None:
    class Self(Identity):
        pass

    pure.identity_self.restype = Self
    self = pure.identity_self()
    assert self.pid == os.getpid()

    def is_dead(pid: int, start_time: int, namespace: int = self.namespace) -> bool:
        other = Identity(pid, start_time, namespace)
        return bool(pure.identity_is_dead(ctypes.byref(other), ctypes.byref(self)))

    assert not is_dead(self.pid, self.start_time)
    assert is_dead(self.pid, self.start_time + 1)
    with subprocess.Popen(["/bin/true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(child.pid, int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()[19]))
    assert is_dead(child.pid, 1)
    assert not is_dead(child.pid, 1, self.namespace + 1)


@pytest.mark.parametrize(("is_held", "cleared", "timeouts"), [(False, 5, 0), (True, 0, 1)])
def test_reaping_waits_for_the_lock_at_most_once(
    pure: ctypes.CDLL, *, is_held: bool, cleared: int, timeouts: int
) -> None:
    pure.identity_self.restype = Identity
    self, place = pure.identity_self(), ctypes.c_void_p(pure.region_anonymous())
    for start_time in range(1, 6):
        pure.account_claim_slot(place, ctypes.byref(Identity(os.getpid(), start_time, self.namespace)))
    if is_held:
        pure.region_lock(place, 0)
    assert pure.identity_reap(place, ctypes.byref(self), 5) == cleared
    assert region.decode(region_bytes(place.value or 0)).timeouts == timeouts
    pure.region_close(place)
