"""The report of a test whose worker crashed says what ended the worker, and where it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CRASHES = """
import ctypes, os, signal

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_invalid_address():
    ctypes.string_at(0)

def test_exit():
    os._exit(3)
"""


@pytest.mark.heavy
def test_crashes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "test_crashes.py").write_text(CRASHES)
    plugins = ["-p", "xdist.plugin", "-p", "tests.crashed_workers"]
    command = [sys.executable, "-m", "pytest", *plugins, "-n", "1", f"--rootdir={tmp_path}", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stderr
    report = done.stdout.partition("FAILURES")[2]
    for test, ending in {"killed": "SIGKILL", "invalid_address": "SIGSEGV", "exit": "exit code 3"}.items():
        assert f"crashed while running 'test_crashes.py::test_{test}': {ending}\n" in report
    assert "in test_invalid_address\n" in report
