"""`vgpu diagnose --live` of programs under the limiter, on the simulated GPU."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import limiter
from simgpu import build, state_directory
from vgpu.adapters.nvml.activity import CardActivity
from vgpu.adapters.process_use import HostUse
from vgpu.cli import app
from vgpu.cli.failure import CommandFailed
from vgpu.cli.local import allocations, live
from vgpu.cli.local.allocations import MachineAllocation
from vgpu.domain.formats.region import Activity
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.diagnose.period import CardSeen, Period

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CARDS = [replace(make_card, context_mib=500) for make_card in state_directory.make_cards(1)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    state_directory.write_cards(tmp_path, CARDS)
    simulated = {
        "LD_LIBRARY_PATH": str(build.ensure()),
        "SIMGPU_STATE": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    return {**os.environ, **simulated, "PATH": f"{build.ensure()}:{os.environ['PATH']}"}


@contextlib.contextmanager
def running(environment: dict[str, str], *command: str) -> Iterator[None]:
    limited = [sys.executable, "-m", "vgpu.cli", "run", "--gpu-mem=2Gi", "--gpu-cores=30", "--", *command]
    with subprocess.Popen(limited, env=environment, stdout=subprocess.DEVNULL) as program:
        yield
        program.terminate()


def diagnosed(environment: dict[str, str], name: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "vgpu.cli", "diagnose", "--live", name, "--seconds=4", "-o", "json"]
    for _ in range(20):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 3:
            break
    return done.returncode, done.stdout or done.stderr


@pytest.mark.slow
def test_a_program_with_more_work_than_its_share(environment: dict[str, str]) -> None:
    with running(environment, "gpuprobe", "spin", "500"):
        code, output = diagnosed(environment, "gpuprobe")
    found = json.loads(output)
    assert code == 1
    assert [finding["code"] for finding in found["findings"]] == ["share-used-up"]
    assert "own share of 30 %" in found["findings"][0]["seen"]


@pytest.mark.slow
def test_a_program_that_has_stopped_to_use_its_card(environment: dict[str, str]) -> None:
    with running(environment, "sh", "-c", "timeout 2 gpuprobe spin 500; exec sleep 100"):
        subprocess.run(["sleep", "4"], check=True)
        code, output = diagnosed(environment, "sleep 100")
    assert code == 1
    assert [finding["code"] for finding in json.loads(output)["findings"]] == ["idle"]


class Driver:
    """NVML that has seen these processes on one card for two looks, and the card's own counters."""

    def __init__(self, busy: dict[int, float] | None, found: CardActivity) -> None:
        self.busy = {} if busy is None else {"GPU-a": busy}
        self._found = found

    def activity(self, gpu: str) -> CardActivity | None:
        return self._found if gpu in self.busy else None


COUNTERS = CardActivity(kernels=0.5, multiprocessors=0.25, copied_per_s=1e9, clock=0.9, power=1.0, heat=0.5)


@pytest.mark.parametrize(
    ("busy", "pids", "expected"),
    [
        ({7: 1.0}, {7, 8}, CardSeen(0.5, 0.25, 1e9, 0.9, 1.0, 0.5)),  # alone: the counters are the program's
        ({7: 1.0, 9: 0.4}, {7}, CardSeen(0.5)),  # beside another: its own samples only
        ({9: 2.0}, {7}, CardSeen(0.0)),
        ({7: 9.0, 9: 1.0}, {7}, CardSeen(1.0)),
        (None, {7}, None),  # the driver names no processes
        ({9: 1.0}, set(), None),  # the program's processes are not known
    ],
)
def test_what_a_card_does_is_the_programs_only_where_it_is_alone(
    busy: dict[int, float] | None, pids: set[int], expected: CardSeen | None
) -> None:
    driver: Any = Driver(busy, COUNTERS)
    assert live._card_seen(CardUuid("GPU-a"), pids, driver, looks=2) == expected


def test_without_counters_the_share_is_that_of_the_samples() -> None:
    driver: Any = Driver({7: 0.8}, CardActivity())
    assert live._card_seen(CardUuid("GPU-a"), {7}, driver, looks=2) == CardSeen(0.4)


def test_what_the_host_does_is_a_rate() -> None:
    old = {7: HostUse(10, 100, 1000)}
    new = {7: HostUse(2_000_000_010, 300, 1000, 60, threads=3), 8: HostUse(1_000_000_000, 0, 500, threads=1)}
    seen = live._host_seen(old, new, 2_000_000_000)
    assert seen is not None
    assert (seen.cpus, seen.read_per_s, seen.written_per_s) == (1.5, 100.0, 250.0)
    assert (seen.storage_per_s, seen.threads) == (30.0, 4)
    assert live._host_seen({}, new, 1) is None


def test_programs_that_are_watched_together_are_said_to_fit() -> None:
    seen = Period(10**10, 0, Activity(), has_launched=False, cores=30)
    watched = {name: replace(seen, card=CardSeen(busy)) for name, busy in (("a", 0.3), ("b", 0.5), ("c", 0.9))}
    a, b, c = live._diagnoses(watched)
    assert a.sharing.endswith("up to 65% together fit beside it, such as b")
    assert b.sharing.endswith("up to 45% together fit beside it, such as a")
    assert c.sharing.endswith("do not share the card")


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    program = app.build({"XDG_RUNTIME_DIR": str(tmp_path)}, limiter.this_host(), tmp_path, lambda: NOW)
    done = CliRunner().invoke(program, ["diagnose", "--live", "nothing-of-that-name"])
    assert done.exit_code == 3
    assert "nothing-of-that-name: is no allocation's ID, command or pod; see vgpu top" in done.output


def test_a_program_that_has_used_no_card_is_said_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = MachineAllocation(folder=tmp_path / "a1b2", name="python train.py", limits=None, cards=())
    monkeypatch.setattr(allocations, "read_all", lambda _: iter([waiting]))
    with pytest.raises(CommandFailed, match="a1b2: has used no card so far"):
        live.diagnose([tmp_path], "a1b2", 1, limiter.this_host())
