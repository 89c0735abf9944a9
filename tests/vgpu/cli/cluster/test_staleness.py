"""Answers that are old, at the command line: a line on stderr for each command that shows data."""

from typing import Any

import pytest

from tests.vgpu.cli.cluster import canned
from tests.vgpu.cli.cluster.conftest import Server, run
from vgpu.cli.cluster import staleness

SINCE = "2026-11-18T11:06:40+00:00"
COMMANDS = (
    "get gpus", "get nodes", "get pods -A", "get pending -A", "describe gpu node-1/0", "describe node node-1",
    "describe pod train", "explain waits", "doctor", "usage", "rightsize", "inspect", "top gpus --once",
    "top pods --once", "simulate -f tests/vgpu/cli/cluster/pod.yaml",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_shows_data_says_since_when_they_are_old(server: Server, command: str) -> None:
    assert SINCE not in run(*command.split(), "--server", server.url)[1]
    server.answers = {
        key: (status, {**answer, "staleSince": SINCE} if isinstance(answer, dict) else answer)
        for key, (status, answer) in server.answers.items()
    }
    output = run(*command.split(), "--server", server.url)[1]
    assert [line for line in output.splitlines() if line.startswith("warning: ") and SINCE in line]


def test_each_silent_node_of_a_list_is_named(server: Server) -> None:
    rows = [{**row, "staleSince": SINCE if row["node"] == "node-2" else ""} for row in canned.GPUS]
    server.answers["GET /api/v1/gpus"] = canned.page(*rows)
    output = run("get", "gpus", "--server", server.url)[1]
    assert output.count("warning: ") == 1
    assert f"warning: node node-2 was last heard of at {SINCE}: what is shown of it is of then" in output


def test_a_history_that_begins_later_is_named(server: Server) -> None:
    for key in ("GET /api/v1/usage", "GET /api/v1/rightsize"):
        server.answers[key] = (200, {**server.answers[key][1], "storedSince": SINCE})
    for command in ("usage", "rightsize"):
        output = run(command, "--server", server.url)[1]
        assert f"warning: the history begins at {SINCE}: nothing earlier is counted" in output


@pytest.mark.parametrize("answer", [[], None, {"items": [5, {}]}, {"items": {}}, {"staleSince": None}])
def test_other_answers_are_not_old(answer: Any) -> None:
    assert staleness.lines("/gpus", answer) == []


def test_many_silent_nodes_are_counted() -> None:
    rows = [{"name": f"n{number}", "staleSince": SINCE} for number in range(9)]
    assert staleness.lines("/nodes", {"items": rows})[5:] == ["and 4 more nodes"]
