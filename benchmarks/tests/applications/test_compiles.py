"""Programs that compile and tune themselves: goals, choices of autotuners, and caches. They need a real card to run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.applications import application, card_busy, choices, compiles

# As XLA's documentation shows it, with the operations shortened.
XLA = """version: 3
results {
  device: "CUDA: 8.0, Cores: 108"
  hlo: "{ dot(tmp_0, tmp_1) {x} }"
  result {
    run_time {
      nanos: %d
    }
    triton {
      block_m: 32
      num_warps: %d
    }
  }
}
results {
  device: "CUDA: 8.0, Cores: 108"
  hlo: "{ dot(tmp_2) }"
  result {
    gemm {
      algorithm: 7
    }
  }
}
"""


def test_what_xla_chose_does_not_depend_on_measured_times() -> None:
    first, again, other = (choices.of_xla(XLA % numbers) for numbers in ((31744, 4), (31700, 4), (31744, 8)))
    assert first == again
    assert sorted(first.values()) == ["gemm { algorithm: 7 }", "triton { block_m: 32 num_warps: 4 }"]
    assert choices.alike_percent([other], [first, again]) == 50


def test_a_choice_is_as_natively_if_any_native_run_made_it() -> None:
    native = [{"a": "1", "b": "x"}, {"a": "2", "b": "x"}]
    assert choices.alike_percent([{"a": "2", "b": "x"}, {"a": "3", "b": "x"}], native) == 75
    assert choices.alike_percent([{"c": "1"}], native) == 0


def test_native_choices_are_compared_with_other_native_runs_only() -> None:
    assert choices.alike_among([{"a": "1"}, {"a": "1"}, {"a": "2"}]) == pytest.approx(200 / 3)
    assert choices.alike_among([{"a": "1"}] * 3) == 100


def test_only_choices_that_differ_have_lines_of_their_own() -> None:
    ours = {"fixed 20": {"a": "3"}, "fixed 40": {"a": "2"}, "fixed 60": {}}
    found = list(choices.lines([{"a": "1"}, {"a": "2"}], ours))
    assert found == ["  a: natively 1 or 2", "    fixed 20: 3", "    fixed 60: not chosen"]


def test_a_compilation_may_take_what_the_share_leaves() -> None:
    assert str(compiles.compile_goal(2.2, 1.4, 20)) == "<= 8.4"
    assert str(compiles.compile_goal(2.2, 0.1, 20)) == "<= 2.64"


def test_without_the_time_on_the_card_there_is_no_goal() -> None:
    assert str(compiles.compile_goal(2.2, 0.0, 20)) == ""


def test_samples_say_how_long_the_card_was_busy() -> None:
    samples = {3_000_000: 50, 2_000_000: 100, 500_000: 100}
    assert card_busy.sampled_seconds(1_000_000, 3_000_000, samples) == 1.5
    assert card_busy.sampled_seconds(1_000_000, 2_500_000, samples) == 1.25


def test_no_two_runs_share_a_cache(tmp_path: Path) -> None:
    first, second = (compiles.fresh_caches(tmp_path / name) for name in ("1", "2"))
    paths = [value for caches in (first, second) for name, value in caches.items() if name.startswith(("T", "CUDA"))]
    assert len(set(paths)) == len(paths) == 6


def test_xla_keeps_its_other_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--of_the_user")
    flags = compiles.xla_flags(tmp_path, "--more")
    assert flags["XLA_FLAGS"].split() == [
        "--of_the_user",
        f"--xla_gpu_dump_autotune_results_to={flags['BENCH_XLA_CHOICES']}",
        "--more",
    ]


@pytest.mark.parametrize("program", compiles.PROGRAMS, ids=lambda program: program.name)
def test_each_program_exists_and_names_its_framework(program: compiles.CompiledProgram) -> None:
    source = (Path(application.__file__).parent / f"{program.module}.py").read_text()
    assert f'import_module("{application.framework(program.module)}")' in source
    assert f'"{program.kind}": lambda phase' in source


def test_an_application_whose_libraries_print_still_answers(tmp_path: Path) -> None:
    """Answers are the only lines of standard output, whatever a library prints in a phase."""

    script = tmp_path / "noisy.py"
    script.write_text(
        "from benchmarks.applications.phases import serve\nserve({'noise': lambda _: print('AUTOTUNE')})\n"
    )
    asked = json.dumps({"kind": "noise", "begin_ns": 0, "seconds": 1})
    root = Path(application.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(script)], input=asked, capture_output=True, text=True, check=True, cwd=root,
        env={"PYTHONPATH": str(root)},
    )  # fmt: skip
    assert [json.loads(line) for line in done.stdout.splitlines()][1]["choices"] == {}
