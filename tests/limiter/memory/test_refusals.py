"""Every refusal is logged on standard error and counted in the card's row of the region."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from simgpu import state_directory
from simgpu.build import ROOT
from simgpu.world import World
from tests.limiter.conftest import MIB, Container
from vgpu.domain.formats import region

OUT_OF_MEMORY = 2
LINE = re.compile(
    r"vgpu\[\d+\](?: \((\d+) warnings suppressed\))?: (\w+) refused: "
    r"(\d+) bytes asked, (\d+) used, limit (\d+) on (\S+)"
)
KINDS = {
    "alloc": ("cuMemAlloc_v2", 80),
    "pitch": ("cuMemAllocPitch_v2", 80),
    "managed": ("cuMemAllocManaged", 80),
    "async": ("cuMemAllocAsync", 96),
    "vmm": ("cuMemCreate", 80),
    "array": ("cuArrayCreate_v2", 80),
    "array3d": ("cuArray3DCreate_v2", 80),
    "mipmap": ("cuMipmappedArrayCreate", 110),
}

Make = Callable[..., Container]


def ask(container: Container, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs gpuprobe: standard output has its results, standard error the limiter's log."""
    env = container.world.environment(**{**container.env, **more})
    command = [str(container.world.bin / "gpuprobe"), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)


def results(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [json.loads(line)["result"] for line in done.stdout.splitlines()]


def refusals(container: Container) -> int:
    return sum(card.refusals for card in container.region().cards)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_refusal_is_logged_once_with_its_details(container: Container, kind: str) -> None:
    function, amount_mib = KINDS[kind]
    done = ask(container, "alloc", "--kind", kind, "80")
    refused = [match.groups() for match in map(LINE.fullmatch, done.stderr.splitlines()) if match]
    assert results(done) == [OUT_OF_MEMORY]
    assert [(name, limit, card) for _, name, _, _, limit, card in refused] == [
        (function, str(64 * MIB), container.world.cards[0].uuid)
    ]
    assert [int(amount) // MIB for _, _, amount, _, _, _ in refused] == [amount_mib]
    assert refusals(container) == 1


@pytest.mark.parametrize(("kind", "function"), [("context", "cuCtxCreate"), ("module", "cuModuleLoadData")])
def test_a_refusal_after_a_measurement_is_logged(
    make_world: Callable[..., World], make_container: Make, kind: str, function: str
) -> None:
    make_world(tuple(replace(card, context_mib=24, module_kib=24 * 1024) for card in state_directory.make_cards(2)))
    container = make_container("64MiB")
    done = ask(container, "alloc", "--kind", kind, *["1"] * 4)
    refused = results(done).count(OUT_OF_MEMORY)
    assert refused == refusals(container) > 0
    assert re.findall(r"(\w+?)(?:_v\d)? refused", done.stderr) == [function] * refused


def test_the_log_names_the_card_of_the_allocation(make_container: Make, world: World) -> None:
    container = make_container("8MiB")
    done = ask(container, "alloc", "--device", "1", "4", "16")
    assert f"4194304 used, limit 8388608 on {world.cards[1].uuid}" in done.stderr
    assert [(card.gpu, card.refusals) for card in container.region().cards] == [(world.cards[1].uuid, 1)]


@pytest.mark.parametrize("kind", ["alloc", "managed", "vmm", "array"])
def test_the_debug_log_distinguishes_refusals_of_the_driver(container: Container, kind: str) -> None:
    container.world.hold(81920)
    done = ask(container, "alloc", "--kind", kind, "40", VGPU_LOG="debug")
    is_refused = results(done) == [OUT_OF_MEMORY]
    assert is_refused is (kind != "managed")
    assert ("though the limit is not reached" in done.stderr) is is_refused
    assert refusals(container) == 0


def test_with_logging_off_refusals_are_counted_only(container: Container) -> None:
    done = ask(container, "alloc", "80", "80", VGPU_LOG="off")
    assert done.stderr == ""
    assert refusals(container) == 2


def test_the_log_is_rate_limited_and_the_counter_is_not(container: Container) -> None:
    begun = time.monotonic()
    done = ask(container, "alloc", *["80"] * 500)
    seconds = time.monotonic() - begun
    assert results(done) == [OUT_OF_MEMORY] * 500
    assert 1 <= len(done.stderr.splitlines()) <= 10 * (seconds + 2)
    assert refusals(container) == 500


FLOOD = """
import time
from tests.cuda_calls import session
session.start()
for _ in range(40):
    session.alloc(80 << 20)
time.sleep(1.1)
session.alloc(80 << 20)
"""


@pytest.mark.heavy
def test_the_number_of_suppressed_lines_is_logged(container: Container) -> None:
    env = container.world.environment(**container.env, PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, "-c", FLOOD], env=env, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    matches = [match for match in map(LINE.fullmatch, lines) if match]
    assert len(matches) == len(lines)
    assert len(lines) + sum(int(match[1] or 0) for match in matches) == refusals(container) == 41


def test_a_full_or_closed_standard_error_does_not_block(container: Container) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    env = container.world.environment(**container.env)
    command = [str(container.world.bin / "gpuprobe"), "alloc", "80", "8"]
    for state in ("full", "closed"):
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=writing, check=False, timeout=10)
        assert [json.loads(line)["result"] for line in done.stdout.splitlines()] == [OUT_OF_MEMORY, 0]
        if state == "full":
            os.close(reading)
    os.close(writing)


def test_the_log_says_that_the_region_is_missing(container: Container) -> None:
    done = ask(container, "alloc", "2", VGPU_REGION_FILE="/dev/null")
    assert results(done) == [OUT_OF_MEMORY]
    assert "/dev/null cannot be used as the region" in done.stderr
    assert "there is no region to account for it" in done.stderr


LOCK = """
import ctypes, mmap, pathlib, sys
with pathlib.Path(sys.argv[1]).open("r+b") as file:
    region = mmap.mmap(file.fileno(), 0)
print(ctypes.CDLL(None).pthread_mutex_lock(ctypes.byref(ctypes.c_char.from_buffer(region, 56))), flush=True)
sys.stdin.read()
"""


def test_a_refusal_after_a_lock_timeout_is_logged_and_counted(container: Container) -> None:
    """The lock's holder is alive, so an allocation that would fit is refused; the log does not blame the limit."""
    assert results(ask(container, "alloc", "8")) == [0]
    holder = container.world.start(sys.executable, "-c", LOCK, str(container.folder / "region"))
    assert holder.stdout
    assert holder.stdout.readline() == "0\n"
    done = ask(container, "alloc", "8")
    assert results(done) == [OUT_OF_MEMORY]
    assert "the region was locked" in done.stderr
    assert container.region().cards[0].refusals == 1


def test_a_file_in_the_place_of_standard_error_gets_no_line(container: Container, tmp_path: Path) -> None:
    """A daemon closes its standard descriptors, and the next file that it opens has the number 2."""
    data = tmp_path / "data"
    process = container.session()
    process("start()")
    process("os.close(2)")
    assert process(f"os.open({str(data)!r}, os.O_RDWR | os.O_CREAT)") == 2
    assert process(f"alloc({80 * MIB})")[0] == OUT_OF_MEMORY
    assert data.read_bytes() == b""


def test_a_program_started_without_standard_error_gets_no_line_into_its_files(
    container: Container, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    data = tmp_path / "data"
    script.write_text(f"""
import os
while (file := os.open({str(data)!r}, os.O_RDWR | os.O_CREAT)) < 2: pass
os.dup2(file, 2)
from tests.cuda_calls import session
session.start()
os.write(1, str(session.alloc({80 * MIB})[0]).encode())
""")
    env = container.world.environment(**container.env, PYTHONPATH=str(ROOT))
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, str(script)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False, timeout=30)
    assert done.stdout == str(OUT_OF_MEMORY)
    assert data.read_bytes() == b""


@pytest.mark.parametrize(
    "call",
    [
        "alloc(4096)",
        "alloc(4 << 20)",
        "alloc(4096, 'cuMemAllocManaged')",
        "alloc(4096, 'cuMemAllocAsync')",
        "vmm.create(2 << 20)",
        "arrays.cube(4, 4, 0)",
        "arrays.cube(1024, 1024, 4)",
        "arrays.cube(1024, 1024, 0, levels=3)",
    ],
)
def test_a_refusal_ends_its_call_once(container: Container, call: str) -> None:
    """A call that stays open, or ends twice, would keep measurements from correcting the process's charge."""
    process = container.session()
    assert process("start()") == 0
    assert process(f"alloc({64 * MIB})")[0] == 0
    assert process(call)[0] == OUT_OF_MEMORY
    counters = region.calls((container.folder / "region").read_bytes())
    assert {counter & 0xFFFFFFFF for counter in counters} == {0}
