"""The format of results: what is written is read again, and anything else gives an error that names the field."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.record import machine, recorder, result
from benchmarks.record.recorder import ResultRecorder
from benchmarks.record.result import ResultError, ResultRow
from benchmarks.tests import made_up

# A file of version 1, as it was written when version 1 was made. It must stay readable.
VERSION_1 = """{"version": 1, "script": "limiter_compute", "arguments": ["tenants", "--rounds", "3"], "machine":
{"processor": "AMD EPYC", "cores": 16, "kernel": "6.8", "python": "3.12.3", "gpu": "NVIDIA H200", "driver": "580.1",
"cuda": "13.0"}, "commit": "abc1234-dirty", "date": "2026-11-22T14:05:00Z", "simulated": false, "fingerprints":
{"limiter/src": "0123456789abcdef"}, "rows": [{"id": "tenants.30-and-60.1-fixed-30", "value": 29.5, "unit": "%",
"native": 44.9, "worst": 28.6, "rounds": [29.5, 28.6, 30], "goal": "30 within 1.5", "fault": "",
"details": {"seconds": 9}}]}"""


def test_a_result_that_is_written_to_a_device_does_not_replace_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    recorder.write(tmp_path / "pipe", made_up.run(made_up.cost(1.5)))
    assert (tmp_path / "pipe").is_fifo()
    assert result.decode(os.read(reader, 1 << 16).decode()) == made_up.run(made_up.cost(1.5))
    os.close(reader)


def test_a_written_result_is_read_again() -> None:
    found = made_up.run(made_up.cost(1.5), ResultRow(id="same.x", value=None, unit="", fault="cuInit: 100"))
    again = result.decode(result.encode(found))
    assert again == found
    assert again.faults == 1


def test_version_1_is_read() -> None:
    found = result.decode(VERSION_1)
    assert (found.script, found.arguments, found.commit) == (
        "limiter_compute",
        ("tenants", "--rounds", "3"),
        "abc1234-dirty",
    )
    assert (found.machine.driver, found.machine.cores) == ("580.1", 16)
    assert found.rows[0].rounds == (29.5, 28.6, 30)
    assert (found.rows[0].native, found.rows[0].worst, found.rows[0].goal) == (44.9, 28.6, "30 within 1.5")


def edited(place: str, value: Any) -> str:
    """A valid result with one field replaced; `rows.0.id` names a field."""
    document: Any = json.loads(result.encode(made_up.run(made_up.cost(1.5))))
    inner, names = document, place.split(".")
    for name in names[:-1]:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    inner[names[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "the document: must be an object, is []"),
        ('{"leaks": [], "faults": 0}', "version: must be 1, is None"),
        (edited("version", 2), "version: must be 1, is 2"),
        (edited("rows", {}), "rows: must be a list, is {}"),
        (edited("rows", [7]), "rows[0]: must be an object, is 7"),
        (edited("rows.0.value", "fast"), "rows[0].value: must be a number, is 'fast'"),
        (edited("rows.0.value", True), "rows[0].value: must be a number, is True"),
        (edited("rows.0.value", float("nan")), "NaN is not a number of JSON"),
        (edited("rows.0.id", "| x"), "rows[0].id: must be small letters"),
        (edited("rows.0.goal", "a\nb"), "rows[0].goal: must be a text of one line"),
        (edited("rows.0.surplus", 1), "rows[0]: unknown field 'surplus'"),
        (edited("machine", None), "machine: must be an object, is None"),
        (edited("machine", {}), "machine: "),
        (edited("simulated", "no"), "the document.simulated: must be true or false, is 'no'"),
        (edited("commit", "../../etc"), "the document.commit: must be letters, digits and '._+-', is '../../etc'"),
        (edited("script", "a/b"), "the document.script: must be letters, digits and '._+-', is 'a/b'"),
        (edited("date", "yesterday"), "the document.date: must be a time such as 2026-11-22T14:05:00Z, is 'yesterday'"),
        (edited("fingerprints", {"limiter/src": 1}), "the document.fingerprints.limiter/src: must be a text"),
        (" " * (result.MOST_BYTES + 1), "at most 4194304 are read"),
    ],
)
def test_anything_else_is_refused_by_field(text: str, message: str) -> None:
    with pytest.raises(ResultError, match=re.escape(message)):
        result.decode(text)


def test_a_figure_that_is_no_number_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        result.encode(made_up.run(made_up.cost(float("inf"))))


def test_simulated_and_shortened_runs_are_not_published() -> None:
    assert made_up.run().is_publishable
    assert not made_up.run(simulated=True).is_publishable
    assert not made_up.run(arguments=("costs", "--quick")).is_publishable


def test_a_killed_run_leaves_the_rows_measured_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(machine.COMMIT_ENV, "feed123")
    record = ResultRecorder(tmp_path / "new" / "figures.json", "limiter_memory", ("limiter/src",))
    record.add(made_up.cost(1.5))
    record.add(made_up.cost(1.6, "init"))
    found = result.decode((tmp_path / "new" / "figures.json").read_text())
    assert [row.value for row in found.rows] == [1.5, 1.6]
    assert (found.commit, list(found.fingerprints)) == ("feed123", ["limiter/src"])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["figures.json"]


@pytest.mark.parametrize("arguments", [[], ["--json", "a"], ["--logs", "a", "--json", "b"], ["--json"]])
def test_a_figure_does_not_depend_on_where_it_is_written(arguments: list[str]) -> None:
    assert recorder.of_measurement(arguments) == ()


def test_a_file_is_named_by_script_date_arguments_and_commit() -> None:
    arguments = recorder.of_measurement(["race", "--processes", "64", "--json", "a.json", "--logs", "b", "--quick"])
    name = recorder.file_name(made_up.run(script="memory.torch_step", arguments=arguments))
    assert name == "memory_torch_step/2026-11-22-race-processes-64-quick-abc1234.json"


def test_a_file_name_has_small_letters_digits_dashes_and_underscores() -> None:
    name = recorder.file_name(made_up.run(arguments=("--only", "4+4 %, ../x"), commit="abc+1.dirty"))
    assert name == "limiter_memory/2026-11-22-only-4-4-x-abc-1-dirty.json"


def test_row_ids_have_no_blanks_and_no_capitals() -> None:
    assert result.slug("costs", "alloc+free 4 KiB") == "costs.alloc-free-4-kib"
    assert result.slug("tenants", "30 and 60", "1: fixed 30 %") == "tenants.30-and-60.1-fixed-30"
