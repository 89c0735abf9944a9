"""Every command, where the standard streams are full, closed, or cannot encode what is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vgpu.cli.cluster.conftest import Server, server
from tests.vgpu.cli.conftest import GIB, Make, card_bytes
from vgpu.cli.failure import OUTPUT_FAILED

pytestmark = pytest.mark.heavy

__all__ = ["server"]

ROOT = Path(__file__).parents[3]
CLUSTER = [
    ["get", "gpus"],
    ["get", "pods", "-A", "-o", "yaml"],
    ["get", "nodes", "-o", "csv"],
    ["top", "gpus", "-c", "1"],
    ["describe", "node", "node-1"],
    ["doctor"],
    ["usage"],
    ["inspect"],
]
LOCAL = [
    ["version"],
    ["--help"],
    ["completion", "bash"],
    ["log"],
    ["log", "--query", "help"],
    ["top", "--once", "--refresh", "0.1"],
    ["top", "--once", "--refresh", "0.1", "-o", "json"],
    ["estimate", "--params", "7e9"],
    ["estimate", "--params", "7e9", "-o", "json"],
    ["diagnose", "--script", str(ROOT / "tests/vgpu/workloads/scripts/seen/mnist_basic.py")],
]
SHELL = ["/bin/sh", "-c"]


# Runs commands of the program one after the other; forks, because most of a command's time is its imports.
EACH_IN_A_FORK = """
import json, os, sys
from vgpu.cli import __main__
for arguments, environment, redirected in json.loads(sys.argv[1]):
    pid = os.fork()
    if not pid:
        os.environ.update(environment)
        sys.argv[1:] = arguments
        if redirected == "closed":
            os.close(1)
            sys.stdout = None
        else:
            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        __main__.main()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=sys.stderr, flush=True)
"""


def shell(redirected: str, arguments: list[str], **environment: str) -> tuple[int, str]:
    """Run a command with redirected streams; return its exit code and what it wrote into the other streams."""
    return _output([*SHELL, f'exec "$@" {redirected}', "sh", sys.executable, "-m", "vgpu.cli", *arguments], environment)


def _output(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=50,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="surrogateescape")


def test_commands_whose_output_fails_say_so_in_one_line(server: Server, home: Path, make: Make) -> None:
    make("ab12cd34", card_bytes(used=GIB), command="python train.py")
    commands = [(arguments, {"VGPU_SERVER": server.url}) for arguments in CLUSTER]
    commands += [(arguments, {"VGPU_STATE_DIR": str(home)}) for arguments in LOCAL]
    reasons = {"full": "No space left on device", "closed": "Bad file descriptor"}
    runs = [(*command, redirected) for command in commands for redirected in reasons]
    _, said = _output([sys.executable, "-c", EACH_IN_A_FORK, json.dumps(runs)], {})
    lines = iter(said.splitlines())
    for arguments, _, redirected in runs:
        expected = f"vgpu: the output cannot be written: {reasons[redirected]}"
        assert [next(lines), next(lines)] == [expected, str(OUTPUT_FAILED)], (arguments, said)
    assert list(lines) == []


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_a_failing_stderr_does_not_change_the_exit_code(redirected: str) -> None:
    assert shell(redirected, ["get", "gpus", "--server", "ftp://x"]) == (2, "")
    assert shell(redirected, ["run", "--gpu-mem", "1Gi", "--", "/bin/sh", "-c", "echo x; exit 9"]) == (9, "x\n")


def test_closed_streams_are_closed_for_the_command_of_run_too(home: Path) -> None:
    """No file of the limits has the number of a closed stream, where the command would write into it."""
    script = "echo x; echo $? >&2; read y; readlink /proc/self/fd/0 /proc/self/fd/1 >&2"
    code, said = shell("<&- >&-", ["run", "--gpu-mem", "1Gi", "--", *SHELL, script], VGPU_STATE_DIR=str(home))
    assert (code, str(home) in said) == (0, False), said
    assert "\n1\n" in said
    assert shell("<&-", ["simulate", "-f", "-", "--cluster", "/dev/null"])[0] == 2


def test_output_that_cannot_encode_a_name(server: Server, home: Path, make: Make) -> None:
    row = {**server.answers["GET /api/v1/nodes"][1]["items"][0], "name": "n\xe9\ud800"}
    server.answers["GET /api/v1/nodes"] = (200, {"items": [row], "nextCursor": ""})
    make("ab12cd34", card_bytes(used=GIB), command="python tr\xe9.py")
    for arguments, written in (  # click writes UTF-8 where a stream is ASCII
        (["get", "nodes", "--server", server.url], "n\xe9?"),
        (["get", "nodes", "-o", "yaml", "--server", server.url], "n\\xE9\\uD800"),
        (["top", "nodes", "-c", "1", "--server", server.url], "n\\xe9?"),
        (["top", "--once", "--refresh", "0.1", "--state", str(home)], "tr\\xe9.py"),
        (["estimate", str(home / "m\xe9.json")], "m\\xe9.json: No such file"),
    ):
        _, said = shell("", arguments, PYTHONIOENCODING="ascii")
        assert (written in said, "Traceback" in said) == (True, False), said
