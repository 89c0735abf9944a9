"""Processes of a job, with a program whose steps wait for the other ranks as a collective does."""

import importlib.util
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.card_jobs import processes, seat
from benchmarks.card_jobs.jobs import JOBS
from benchmarks.card_jobs.processes import CardProgram, answers_of, ask_all, end_all, last_words
from benchmarks.card_jobs.seat import LastStep, Seat

ROOT = Path(__file__).parents[3]
PROGRAM = """
import mmap, time
from pathlib import Path
from benchmarks.card_jobs.rank_steps import serve

class WaitingRank:
    ahead = {ahead}

    def __init__(self, seat):
        print("a library prints")
        self.rank, self.ranks, self.launched = seat.rank, seat.ranks, 0
        with (seat.folder / "launched").open("r+b") as file:
            self.words = memoryview(mmap.mmap(file.fileno(), 64)).cast("q")

    def step(self):
        self.launched += 1
        number = self.words[self.rank] = self.launched
        if number == 7 and self.rank == 1:
            {seventh}

        def wait():
            while min(self.words[: self.ranks]) < number:
                time.sleep(0.0002)
        return wait

    def trace(self, run):
        run()
        return {{"0": [(0, 10, False), (10, 20 + 5 * self.rank, True)]}}

serve(WaitingRank)
"""


@contextmanager
def two_ranks(folder: Path, *, ahead: int = 2, seventh: str = "pass") -> Iterator[list[CardProgram]]:
    script = folder / "program.py"
    script.write_text(PROGRAM.format(ahead=ahead, seventh=seventh))
    (folder / "launched").write_bytes(bytes(64))
    seat.make_folder(folder)
    ranks = [Seat(rank, 2, rank, 1, folder) for rank in range(2)]
    started = [
        CardProgram(f"rank {place.rank}", [sys.executable, str(script), *place.arguments()], {"PYTHONPATH": str(ROOT)})
        for place in ranks
    ]
    try:
        assert answers_of(started, 30.0) == [{"ready": True}] * 2
        yield started
    finally:
        end_all(started)


def launched(folder: Path) -> list[int]:
    return list(memoryview((folder / "launched").read_bytes()).cast("q")[:2])


@pytest.mark.parametrize("ahead", [0, 2])
def test_ranks_end_each_phase_after_the_same_step(tmp_path: Path, ahead: int) -> None:
    with two_ranks(tmp_path, ahead=ahead) as ranks:
        assert ask_all(ranks, 30.0, kind="prepare") == [{"prepared": True}] * 2
        for phase in range(3):
            begin_ns = time.monotonic_ns()
            answers = ask_all(ranks, 30.0, kind="steps", phase=phase, begin_ns=begin_ns, seconds=0.1)
            assert all(begin_ns <= end < begin_ns + 100_000_000 for answer in answers for end in answer["ends_ns"])
            assert all(answer["ends_ns"] for answer in answers)
            first, second = launched(tmp_path)
            assert first == second


def test_steps_during_the_warm_up_do_not_count(tmp_path: Path) -> None:
    with two_ranks(tmp_path) as ranks:
        begin_ns = time.monotonic_ns() + 200_000_000
        answers = ask_all(ranks, 30.0, kind="steps", phase=0, begin_ns=begin_ns, seconds=0.1)
        assert launched(tmp_path)[0] > len(answers[0]["ends_ns"]) + 10
        assert min(answers[0]["ends_ns"]) >= begin_ns


def test_a_rank_that_fails_ends_the_wait_with_its_last_words(tmp_path: Path) -> None:
    with two_ranks(tmp_path, seventh="raise ValueError('no such | step')") as ranks:
        begun = time.monotonic()
        with pytest.raises(RuntimeError, match=r"rank 1: it ended without an answer: .*ValueError: no such / step"):
            ask_all(ranks, 20.0, kind="steps", phase=0, begin_ns=time.monotonic_ns(), seconds=1.0)
        assert time.monotonic() - begun < 10


@pytest.mark.heavy
def test_a_rank_that_hangs_says_where_and_ends(tmp_path: Path) -> None:
    with (
        two_ranks(tmp_path, seventh="time.sleep(1000)") as ranks,
        pytest.raises(RuntimeError, match=r"rank \d: it ended without an answer: time-out in // .* in (step|wait)"),
    ):
        ask_all(ranks, 1.0, kind="steps", phase=0, begin_ns=time.monotonic_ns(), seconds=0.1)


def test_a_process_that_cannot_end_itself_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OWN_S", -59.0)
    with (
        two_ranks(tmp_path, seventh="time.sleep(1000)") as ranks,
        pytest.raises(RuntimeError, match=r"no answer in 1 s: it was killed"),
    ):
        ask_all(ranks, 60.0, kind="steps", phase=0, begin_ns=time.monotonic_ns(), seconds=0.1)


def test_a_process_that_ended_before_it_is_asked_says_why(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("raise ImportError('no framework')")
    program = CardProgram("rank 0", [sys.executable, str(script)], {})
    with pytest.raises(RuntimeError, match=r"rank 0: it ended without an answer: .*ImportError: no framework"):
        answers_of([program], 30.0)
    with pytest.raises(RuntimeError, match="no framework"):
        program.ask({"kind": "prepare"})
    end_all([program])


def test_last_words_are_without_frames_of_nccl() -> None:
    assert last_words("what():  a time-out\nframe #0: c10::Error\n\nframe #1: x\n") == "what():  a time-out"


def test_the_last_step_is_chosen_once(tmp_path: Path) -> None:
    seat.make_folder(tmp_path)
    first, other = LastStep(tmp_path, 3), LastStep(tmp_path, 3)
    assert not other.is_reached(10**9)
    first.choose(10, ahead=2)
    first.choose(20, ahead=2)
    assert (other.is_reached(12), other.is_reached(13)) == (False, True)
    assert not LastStep(tmp_path, 4).is_reached(13)


def test_a_seat_reads_its_own_command_line(tmp_path: Path) -> None:
    place = Seat(1, 2, 1, 1, tmp_path, "gloo", 3)
    assert Seat.of(place.arguments()) == place


@pytest.mark.parametrize("module", sorted({job.module for job in JOBS.values()}))
def test_programs_exist(module: str) -> None:
    assert importlib.util.find_spec(f"benchmarks.card_jobs.{module}")
