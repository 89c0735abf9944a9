"""The ledger: processes that are killed, stopped, forked, contend for memory, or live in other PID namespaces."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simgpu import state_directory, usage
from simgpu.world import World

MIB = 1 << 20
PAGE = 2 * MIB
OUT_OF_MEMORY = 2
CAPACITY_MIB = 81920

UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


def test_used_is_the_sum_over_the_living(world: World) -> None:
    """Forty processes; half of them are killed, then the others end."""
    sizes = [random.Random(7).randrange(1, 1500) * 2 for _ in range(40)]
    holders = [world.hold(size) for size in sizes]
    assert world.mib_used() == sum(sizes)
    for process in holders[::2]:
        process.kill()
        process.wait()
    assert world.mib_used() == sum(sizes[1::2])
    assert world.probe("info")[0]["cuda"][0]["free"] == (CAPACITY_MIB - sum(sizes[1::2])) * MIB
    for process in holders[1::2]:
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert usage.bytes_by_card(world.state) == {}


def test_what_the_dead_held_can_be_taken(world: World) -> None:
    world.hold(CAPACITY_MIB).kill()
    world.processes[-1].wait()
    assert world.probe("fill", "1024") == [{"mib": CAPACITY_MIB, "result": OUT_OF_MEMORY}]


def test_a_stopped_process_keeps_its_memory(world: World) -> None:
    world.hold(50000).send_signal(signal.SIGSTOP)
    assert world.probe("fill", "10") == [{"mib": CAPACITY_MIB - 50000, "result": OUT_OF_MEMORY}]


@pytest.mark.heavy
def test_processes_racing_for_the_last_bytes_never_both_get_them(make_world: Callable[..., World]) -> None:
    world = make_world(state_directory.make_cards(1, memory_mib=4))
    racers = [world.session() for _ in range(3)]
    for racer in racers:
        assert racer("[start(), nvml('nvmlInit')]") == [0, None]
    for racer in racers:
        racer.tell(f"contend({2 * PAGE}, 1000)")
    refusals, most = zip(*(racer.answer() for racer in racers), strict=True)
    assert sum(refusals) > 0
    assert max(most) == 2 * PAGE
    assert usage.bytes_by_card(world.state) == {}


@pytest.mark.heavy
def test_processes_filling_together_take_the_card_exactly(world: World) -> None:
    racers = [world.session() for _ in range(4)]
    for racer in racers:
        assert racer("start()") == 0
    for racer in racers:
        racer.tell(f"fill_card({8 * MIB})")
    assert sum(racer.answer() for racer in racers) * 8 == CAPACITY_MIB
    assert [*usage.peak_bytes_by_card(world.state).values()] == [CAPACITY_MIB * MIB]


@pytest.mark.heavy
def test_killing_in_the_middle_of_allocations_leaves_nothing(world: World) -> None:
    keeper = world.hold(1000)
    chance = random.Random(11)
    for _ in range(30):
        victims = [world.start(str(world.bin / "gpuprobe"), "fill", "1") for _ in range(3)]
        time.sleep(chance.random() * 0.03)
        for victim in victims:
            victim.kill()
            victim.wait()
        assert world.mib_used() == 1000
    assert keeper.poll() is None
    assert max(usage.peak_bytes_by_card(world.state).values()) <= CAPACITY_MIB * MIB


def unshare_works() -> bool:
    return shutil.which("unshare") is not None and not subprocess.run([*UNSHARE, "true"], check=False).returncode


def test_containers_with_their_own_pids_are_told_apart(world: World) -> None:
    if not unshare_works():
        pytest.skip("no private PID namespaces here")
    holders = [world.hold(size, wrapper=UNSHARE) for size in (1000, 2000)]
    outside = world.hold(4000)
    session = world.session()
    session("nvml('nvmlInit')")
    shown = {size // MIB: pid for pid, size in session("processes()")}
    assert world.mib_used() == 7000
    assert shown.keys() == {1000, 2000, 4000}
    assert shown[4000] == outside.pid
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in shown.values()}
    assert names == {"gpuprobe"}
    os.kill(shown[1000], signal.SIGKILL)
    holders[0].wait()
    assert world.mib_used() == 6000


def test_nvml_names_a_process_to_itself_and_to_others(world: World) -> None:
    first, second = world.session(), world.session()
    for session in (first, second):
        session("nvml('nvmlInit')")
        session("start()")
        session(f"alloc({4 * MIB})")
    expected = sorted([[first.process.pid, 4 * MIB], [second.process.pid, 4 * MIB]])
    assert sorted(first("processes()")) == expected
    first("nvml('nvmlShutdown')")
    assert sorted(second("processes()")) == expected


def test_a_forked_child_has_no_driver_and_holds_nothing(world: World) -> None:
    session = world.session()
    session("start()")
    session(f"alloc({100 * MIB})")
    assert session("in_fork('[start(), alloc(4096)[0], info()[0]]')") == [3, 3, 3]
    assert world.mib_used() == 100
    child = session("fork_and_stay()")
    session.kill()
    assert world.mib_used() == 0
    os.kill(child, signal.SIGKILL)


def test_a_child_forked_before_the_start_has_a_driver_of_its_own(world: World) -> None:
    assert world.session()(f"in_fork('[start(), alloc({MIB})[0]]')") == [0, 0]
