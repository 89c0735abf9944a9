"""`vgpu hold` beside a job on two simulated cards, a rank of which rests: by the real command and limiter."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limiter import launch, local_state
from simgpu.session import ProbeSession
from simgpu.world import World, worlds
from tests.vgpu.cli.conftest import GPU, OTHER, Make, card_bytes, write_cards
from tests.vgpu.cli.local.test_hold import CARDS, entries, until
from vgpu.cli.local.hold_jobs import LinkedCardReader, read_joined
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import CardLimit, Limits
from vgpu.workloads.hold.control import Mode

GIB = 1 << 30
JOB = bytes(range(16))
RESTS_S = 3  # longer than --return-after, after which the load came back on the card of the rank that rests


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with worlds(tmp_path, "tests.cuda_calls.session") as make:
        yield make(tuple(CARDS))


def rank(world: World, home: Path, name: str, devices: tuple[int, ...], job: bytes | None) -> ProbeSession:
    """A program with contexts on these devices, in an allocation of its own."""
    cards = tuple(CardLimit(world.cards[device].uuid, GIB) for device in devices)
    folder = home / local_state.ALLOCATIONS / name
    folder.mkdir()
    local_state.write_allocation(folder, Limits(cards, ComputePolicy.BURST, job=job))
    session = world.session(**launch.variables(folder, {}))
    for device in devices:
        assert session(f"start({device})") == 0
        session(f"collectives.prepare({device}, 2, 100)")
    return session


def one_container(world: World, home: Path) -> ProbeSession:
    session = rank(world, home, "both", (0, 1), None)
    assert session("collectives.link()") == [0, 0]
    return session


def two_containers(world: World, home: Path) -> ProbeSession:
    sessions = [rank(world, home, f"rank{device}", (device,), JOB) for device in (0, 1)]
    return sessions[0]


def test_files_are_read_at_most_once_in_two_seconds(home: Path, make: Make) -> None:
    """Containers of one job use their cards together; those of others, and cards without memory, are left out."""
    wanted = Limits((CardLimit(GPU, GIB),), job=JOB)
    make("a", card_bytes(used=GIB), wanted=wanted)
    make("b", card_bytes(OTHER), wanted=wanted)
    now_ns = 0
    jobs = LinkedCardReader([home], lambda: now_ns)
    assert jobs.of(GPU) == frozenset()
    write_cards(home / local_state.ALLOCATIONS / "b", card_bytes(OTHER, used=GIB))
    now_ns = 1_900_000_000
    assert jobs.of(GPU) == frozenset()
    now_ns = 2_000_000_000
    assert (jobs.of(GPU), jobs.of(OTHER)) == (frozenset({OTHER}), frozenset({GPU}))


def test_files_that_cannot_be_read_join_nothing(home: Path, make: Make) -> None:
    wanted = Limits((CardLimit(GPU, GIB), CardLimit(OTHER, GIB)))
    (make("a", wanted=wanted) / "region").write_bytes(b"x")
    (make("b", wanted=wanted) / "limits").write_bytes(b"x")
    make("c", card_bytes(used=GIB), card_bytes(OTHER, used=GIB), wanted=wanted)
    assert read_joined([home, home / "none"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("start_job", [one_container, two_containers])
def test_load_stays_away_from_a_rank_that_rests_while_another_one_works(
    world: World, home: Path, tmp_path: Path, start_job: Callable[[World, Path], ProbeSession]
) -> None:
    """Before, it returned on that card two seconds after the rank's last kernel, and met its next collective there."""
    session, log, (first, second) = start_job(world, home), tmp_path / "log", (card.uuid for card in world.cards)

    def of(gpu: str) -> list[dict[str, Any]]:
        return [entry for entry in entries(log) if entry["gpu"] == gpu]

    command = [sys.executable, "-m", "vgpu.cli", "hold", "--return-after=1", f"--log={log}", "-o", "json"]
    env = world.environment(**{local_state.STATE_ENV: str(home)})
    with subprocess.Popen(command, env=env) as holding:
        until(lambda: bool(of(first)) and bool(of(second)), 20)
        assert session("collectives.rank(0).work(2000)") == 0  # its context is current now
        session.tell(f"launches.feed_ahead(2000, {RESTS_S})")
        until(lambda: of(first)[-1]["mode"] == of(second)[-1]["mode"] == Mode.SLEEP, 2)
        slept = of(second)[-1]
        assert slept["job_gpus"] == [first]
        assert slept["message"].startswith(f"Sleep: others use {first}, which has a job with this card, load ")
        session.answer()
        assert of(second)[-1] == slept
        until(lambda: of(first)[-1]["mode"] == of(second)[-1]["mode"] == Mode.RUN, 10)
        holding.kill()
