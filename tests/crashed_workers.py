"""Adds to the report of a test whose pytest-xdist worker crashed: what ended the worker, and its threads' stacks.

Otherwise the stacks are far up in the log, and the signal is nowhere.
"""

import faulthandler
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

_EXIT_S = 5.0
_stacks = pytest.StashKey[Any]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Make a folder for the stacks, before workers are started."""
    config.stash[_stacks] = tempfile.TemporaryDirectory(prefix="vgpu-stacks-")


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a worker, have the stacks written to its file. pytest_configure is too early: pytest then chooses stderr."""
    if hasattr(session.config, "workerinput"):
        file = Path(session.config.workerinput["stacks"]).open("w")  # noqa: SIM115 - open until the process ends
        session.config.stash[_stacks] = file
        faulthandler.enable(file)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where to write."""
    node.workerinput["stacks"] = str(_file(node))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: pytest.TestReport) -> None:
    """Add to the report what ended the worker, and its stacks."""
    worker = report.node  # set by pytest-xdist
    report.longrepr = f"{report.longrepr}: {_ending(worker)}\n{_file(worker).read_text()}".rstrip()


def _file(worker: Any) -> Path:
    folder: str = worker.config.stash[_stacks].name
    return Path(folder, worker.gateway.id)


def _ending(worker: Any) -> str:
    try:
        code = worker.gateway._io.popen.wait(_EXIT_S)  # execnet does not publish it
    except subprocess.TimeoutExpired:
        return "its connection ended, its process did not"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
