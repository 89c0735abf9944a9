"""`vgpu hold` on the simulated GPU, through the real command and the real driver calls."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import limiter
from simgpu import build, state_directory, usage
from vgpu.cli import app
from vgpu.cli.local import hold
from vgpu.cli.local.top import Output
from vgpu.domain.identifiers import CardUuid
from vgpu.workloads.hold.control import Mode
from vgpu.workloads.hold.session import HoldReport

CARDS = [replace(make_card, context_mib=500) for make_card in state_directory.make_cards(2)]
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    state_directory.write_cards(tmp_path, CARDS)
    return {**os.environ, "LD_LIBRARY_PATH": str(build.ensure()), "SIMGPU_STATE": str(tmp_path)}


@contextlib.contextmanager
def holding(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "vgpu.cli", "hold", *arguments]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as running:
        yield running
        running.kill()


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def until(check: Callable[[], bool], within_s: float) -> None:
    end = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_it_raises_the_load_sleeps_while_others_work_and_ends_at_sigterm(
    environment: dict[str, str], tmp_path: Path
) -> None:
    log, (first, second) = tmp_path / "log", (card.uuid for card in CARDS)

    def of(gpu: str) -> list[dict[str, Any]]:
        return [entry for entry in entries(log) if entry["gpu"] == gpu]

    def is_raised(gpu: str) -> bool:
        return any(entry["message"] == "Adjusted speed: boost" for entry in of(gpu))

    with holding(environment, "--target=60", "--return-after=2", f"--log={log}", "-o", "json") as running:
        until(lambda: is_raised(first) and is_raised(second), 20)
        assert all(entry["synthetic"] for entry in entries(log))
        probe = [str(build.ensure() / "gpuprobe"), "spin", "500"]
        with subprocess.Popen(probe, env=environment, stdout=subprocess.DEVNULL) as other:
            until(lambda: of(first)[-1]["mode"] == Mode.SLEEP, 5)
            time.sleep(3)
            assert of(first)[-1]["mode"] == Mode.SLEEP
            other.kill()
        until(lambda: of(first)[-1]["mode"] == Mode.RUN, 10)
        assert {entry["mode"] for entry in of(second)} == {Mode.RUN}
        assert usage.bytes_by_card(tmp_path).keys() == {first, second}
        begun = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert running.wait(10) == 0
        assert time.monotonic() - begun < 2
    assert usage.bytes_by_card(tmp_path) == {}


@pytest.mark.slow
def test_a_card_that_is_not_there_is_named(environment: dict[str, str]) -> None:
    with holding(environment, "--gpu=7") as running:
        assert running.wait(20) == 3
        assert running.stderr is not None
        assert b"--gpu: no card 7" in running.stderr.read()


@pytest.mark.heavy
def test_a_card_that_cannot_be_opened_ends_it(environment: dict[str, str], tmp_path: Path) -> None:
    """The second one has no load yet, and is not waited for."""
    state_directory.inject_faults(tmp_path, ("cuDevicePrimaryCtxRetain", 46))
    with holding(environment) as running:
        assert running.wait(20) == 125
        assert running.stderr is not None
        assert running.stderr.read().startswith(b"vgpu hold: cuDevicePrimaryCtxRetain")


def test_the_log_has_three_files_of_3_mb(tmp_path: Path) -> None:
    logger, line = hold._logger(tmp_path / "log"), "x" * 100_000
    for _ in range(120):
        logger.info(line)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["log", "log.1", "log.2"]
    assert all(file.stat().st_size <= hold.LOG_BYTES for file in files)
    logger.handlers[0].close()


def test_a_line_of_the_log_has_the_time_and_the_card(tmp_path: Path) -> None:
    logger = hold._logger(tmp_path / "log")
    made = HoldReport(CardUuid("GPU-a"), Mode.RUN, 50, 47.4, 1200, "Run for 10s with load 47 and multiplier 1200")
    hold._reporter(logger, Output.TABLE, lambda: NOW)(made)
    logger.handlers[0].close()
    expected = "2026-11-23T00:00:00+00:00 GPU-a Run for 10s with load 47 and multiplier 1200\n"
    assert (tmp_path / "log").read_text() == expected


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--idle-after=30m"], "give --idle-after with --idle-target"),
        (["--idle-after=soon", "--idle-target=60"], "'soon' is not a time from 1m to 720h"),
        (["--target=nan"], "nan is not a number"),
        (["--return-after=nan"], "nan is not a number"),
        (["--duration=inf"], "inf is not a number"),
        (["--log=/none/log"], "--log: /none/log: No such file or directory"),
        (["--log=/"], "--log: /: Is a directory"),
        (["--metrics-listen=9872"], "--metrics-listen: '9872' is not IP:PORT"),
        (["--metrics-listen=127.0.0.1:65536"], "--metrics-listen: '127.0.0.1:65536' is not IP:PORT"),
        (["--metrics-listen=192.0.2.1:80"], "--metrics-listen: 192.0.2.1:80: Cannot assign requested address"),
    ],
)
def test_wrong_options_are_refused(given: list[str], why: str) -> None:
    program = app.build(os.environ, limiter.this_host(), Path("/none"), lambda: NOW)
    done = CliRunner().invoke(program, ["hold", *given])
    assert done.exit_code == 2
    assert why in done.output


@pytest.mark.heavy
def test_a_machine_without_a_driver(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "cards").unlink()
    with holding(environment) as running:
        assert running.wait(20) == 3
        assert running.stderr is not None
        said = running.stderr.read()
        assert b"vgpu hold: no GPU can be used on this machine: " in said
        assert b"NVML comes with NVIDIA's driver" in said
