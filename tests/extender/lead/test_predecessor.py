"""Who ran before in the same container: known only where that process has certainly ended."""

import subprocess
import sys
from pathlib import Path

import pytest

from extender.lead import predecessor

HOLDS = """
import pathlib, sys, time
from extender.lead import predecessor
with predecessor.noted(pathlib.Path(sys.argv[1]), "host", "killed") as before:
    print(before, flush=True)
    time.sleep(60)
"""


def noted(folder: Path, host: str = "host") -> str:
    with predecessor.noted(folder, host, "mine") as before:
        return before


def test_a_process_is_known_to_have_ended_once_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        assert noted(tmp_path) == ""  # it runs
        assert noted(tmp_path, "other") == ""
        process.kill()
    assert noted(tmp_path) == "killed"
    assert noted(tmp_path) == ""  # the last one has ended in order


def test_a_folder_that_cannot_be_written_names_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert noted(tmp_path / "none") == ""
    assert "waits for the end of the Lease" in caplog.text


def test_a_host_may_have_any_name(tmp_path: Path) -> None:
    with predecessor.noted(tmp_path, "../a b", "mine"):
        assert [file.name for file in tmp_path.iterdir()] == ["replica-..%2Fa%20b"]


def test_without_a_folder_nobody_is_named() -> None:
    with predecessor.noted(None, "host", "mine") as before:
        assert before == ""
