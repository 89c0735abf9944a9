"""The commands `vgpu top` and `vgpu set`."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.vgpu.cli.conftest import GIB, GPU, Make, card_bytes, limits_of
from tests.vgpu.cli.test_app import run
from vgpu.domain.asks.policy import ComputePolicy
from vgpu.domain.formats.limits import ANY_GPU, CardLimit, Limits

ROOT = Path(__file__).parents[4]


def vgpu(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "vgpu.cli", *arguments, "--state", str(home)]


def test_one_sample_as_a_table(home: Path, make: Make) -> None:
    make("ab12cd34", card_bytes(used=GIB), command="python train.py")
    code, output = run("top", "--once", "--refresh", "0.1", "--state", str(home))
    head, row = output.splitlines()
    assert (code, head.split()[0]) == (0, "ID")
    assert row.split() == [
        "ab12cd34",
        "python",
        "train.py",
        "8f3c2a",
        "1G/8G",
        "fixed",
        "30",
        "-",
        "-",
        "0",
        "0",
        "0",
        "0",
    ]


def test_each_sample_is_one_line_of_json(home: Path, make: Make) -> None:
    folder = make("ab", card_bytes(used=GIB, throttled_ns=5), command="train")
    code, output = run("top", "-c", "2", "-o", "json", "--refresh", "0.1", "--state", str(home))
    looks = [json.loads(line) for line in output.splitlines()]
    assert (code, len(looks)) == (0, 2)
    (row,) = looks[0]
    assert (row["id"], row["name"], row["gpu"]) == (folder.name, "train", GPU)
    assert (row["used_bytes"], row["limit_bytes"], row["policy"], row["cores"]) == (GIB, 8 * GIB, "fixed", 30)
    assert (row["share_1s"], row["throttled"]) == (None, 0)


def test_top_without_allocations_succeeds(home: Path) -> None:
    code, output = run("top", "--once", "--refresh", "0.1", "-o", "json", VGPU_STATE_DIR=str(home))
    assert (code, "[" in output) == (0, True)


def test_an_empty_top_before_any_program_says_how_one_is_started(tmp_path: Path) -> None:
    """It said: Looked in: no state directory."""
    code, output = run("top", "--once", "--refresh", "0.1", VGPU_STATE_DIR=str(tmp_path / "none"))
    words = " ".join(output.split())
    assert (code, words) == (0, "No program runs under limits. Start one: vgpu run --gpu-mem 4Gi -- COMMAND")


def test_an_empty_top_says_where_it_looked(home: Path) -> None:
    code, output = run("top", "--once", "--refresh", "0.1", VGPU_STATE_DIR=str(home))
    assert (code, f"No program runs under limits. Looked in: {home}" in " ".join(output.split())) == (0, True)


@pytest.mark.heavy
def test_in_a_pipe_it_prints_one_sample(home: Path, make: Make) -> None:
    make("ab12cd34", card_bytes(used=GIB), command="train")
    done = subprocess.run(vgpu(home, "top"), capture_output=True, text=True, timeout=20, check=True)
    assert len(done.stdout.splitlines()) == 2


def test_a_server_without_a_kind_is_refused(home: Path) -> None:
    code, output = run("top", "--server", "http://127.0.0.1:9", "--state", str(home))
    assert (code, output) == (2, "vgpu top: name what to show of the cluster: gpus, nodes, pods, pending or groups\n")


def test_a_missing_state_directory_is_an_error() -> None:
    code, output = run("top", "--state", "/none")
    assert (code, output) == (125, "vgpu top: --state: /none/allocations cannot be read\n")


@pytest.mark.heavy
def test_on_a_terminal_it_refreshes_until_interrupted(home: Path, make: Make) -> None:
    make("ab12cd34", command="python train.py")
    main, side = pty.openpty()
    process = subprocess.Popen(
        vgpu(home, "top", "--refresh", "0.1"), stdin=side, stdout=side, env={"TERM": "xterm", "PYTHONPATH": str(ROOT)}
    )
    os.close(side)
    try:
        seen, until = b"", time.monotonic() + 20
        while seen.count(b"ab12cd34") < 3 and time.monotonic() < until:
            seen += os.read(main, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)
    assert b"\x1b[?1049h" in seen  # the alternate screen
    assert seen.count(b"ab12cd34") >= 3


def test_set_changes_the_given_limits(home: Path, make: Make) -> None:
    folder = make("ab12cd34")
    given = ["--gpu-mem", "2Gi", "--gpu-cores", "50", "--compute-policy", "burst", "--priority", "9"]
    assert run("set", "ab12", *given, "--state", str(home)) == (0, "")
    now = limits_of(folder)
    assert (now.cards[0].memory_bytes, now.cards[0].cores) == (2 * GIB, 50)
    assert (now.compute_policy, now.priority) == (ComputePolicy.BURST, 9)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ab"], 2, "nothing to change"),
        (["ab", "--gpu-cores", "101"], 2, "--gpu-cores"),
        (["ab", "--priority", "101"], 2, "--priority"),
        (["ab", "--gpu-mem", "4Qi"], 2, "vgpu set: --gpu-mem: not an amount of memory: '4Qi'"),
        (["xy", "--gpu-cores", "10"], 3, "vgpu set: xy: no such ID"),
        ([], 2, "Missing argument"),
    ],
)
def test_exit_status_and_message_of_set(home: Path, make: Make, arguments: list[str], code: int, message: str) -> None:
    make("ab")
    ended, output = run("set", *arguments, "--state", str(home))
    assert (ended, re.sub(r"\s+", " ", message) in re.sub(r"\s+", " ", output)) == (code, True), output


def test_set_says_what_counts_for_the_job_of_a_container_that_is_one_of_several(home: Path, make: Make) -> None:
    """The share of one rank that is raised changes nothing while another one's is lower."""
    for number, name in enumerate(("ab12cd34", "bb12cd34", "cc12cd34")):
        cards = (CardLimit(ANY_GPU, 2 * GIB, 30 + 10 * number),)
        job = bytes([number // 2 + 1] * 16)
        make(name, wanted=Limits(cards, ComputePolicy.BURST, 5, job=job), command=f"rank-{number}")
    ended, output = run("set", "ab12", "--gpu-cores", "80", "--compute-policy", "fixed", "--state", str(home))
    said = re.sub(r"\s+", " ", output)
    assert (ended, said.startswith("ab12cd34 is of job 01010101, with rank-1. The lowest share")) == (0, True), output
    assert said.endswith("count for all of them: fixed 40, priority 5 ")
    assert limits_of(home / "allocations/ab12cd34").job == bytes([1] * 16)
    assert run("set", "cc12", "--gpu-cores", "80", "--state", str(home)) == (0, ""), (
        "the only container of its job here"
    )
