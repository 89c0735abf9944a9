"""`vgpu log`: nvidia-smi's field names and formats, over allocations of this machine."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from limiter.host import Host
from tests.vgpu.cli.conftest import GIB, GPU, MS, Make, card_bytes
from vgpu.cli import app
from vgpu.cli.local import log

NOW = datetime(2026, 11, 22, 12, 30, 1, 234_567, tzinfo=UTC)


def run(home: Path, *arguments: str) -> tuple[int, str]:
    program = app.build({}, Host(lambda: 5000 * MS, lambda _: None, lambda: "id"), Path("/none"), lambda: NOW)
    outcome = CliRunner().invoke(program, ["log", "--state", str(home), *arguments])
    return outcome.exit_code, outcome.output


def test_the_default_fields_have_units(home: Path, make: Make) -> None:
    make("a1", card_bytes(used=2 * GIB), command="/usr/bin/python train,py")
    code, output = run(home)
    assert code == 0
    assert output.splitlines() == [
        "timestamp, process_name, gpu_uuid, memory.total [MiB], memory.used [MiB], utilization.gpu [%]",
        f"2026/11/22 12:30:01.234, python train;py, {GPU}, 8192 MiB, 2048 MiB, [N/A]",
    ]


def test_fields_heads_and_units_can_be_chosen(home: Path, make: Make) -> None:
    make("a1", card_bytes(used=GIB, refusals=3), command="train, fast")
    query = "vgpu.id,name,memory.free,utilization.memory,vgpu.cores,vgpu.policy,vgpu.refusals"
    assert run(home, "--query", query, "--format", "csv,noheader,nounits") == (
        0,
        "a1, train; fast, 7168, 12, 30, fixed, 3\n",
    )


@pytest.mark.heavy
def test_it_loops_and_ends(home: Path, make: Make) -> None:
    make("a1", card_bytes())
    assert run(home, "--query", "vgpu.id", "--format", "csv,noheader", "-l", "5", "-c", "3") == (0, "a1\n" * 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--query", "memory.used,temperature.gpu"], 'Field "temperature.gpu" is not a valid field to query'),
        (["--format", "xml"], "--format: must be csv"),
        (["--format", "csv,noheader,pretty"], "--format: must be csv"),
    ],
)
def test_what_cannot_be_read_is_named(home: Path, arguments: list[str], words: str) -> None:
    code, output = run(home, *arguments)
    assert (code, words in output) == (2, True)


def test_every_field_is_listed(home: Path) -> None:
    code, output = run(home, "--query", "help")
    assert (code, [line.split()[0] for line in output.splitlines()]) == (0, list(log.FIELDS))
