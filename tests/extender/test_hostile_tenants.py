"""What hostile tenants write reaches nobody else's view as more than a bounded text without control characters."""

import csv
import io
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings

from extender.admin.answers.listed import pods
from extender.explain import pending_text
from extender.state.pod_reader import PodReader
from tests.extender.conftest import World
from tests.hostile_pods import tenants
from vgpu.cli.cluster import output, tables
from vgpu.cli.cluster.output import Format

NO_SNAPSHOT: Any = SimpleNamespace(views={}, gpunodes={}, decisions={}, holders={})
MAX_TEXT = 1000
MAX_LINE = 3000  # of a table: the longest names beside each other, and a list of problems at the end
NEIGHBOUR = {
    "metadata": {"name": "neighbour", "namespace": "other", "uid": "n"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"vgpu.io/gpu-mem": "256"}}}]},
    "status": {"phase": "Pending"},
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def row_of(pod: dict[str, Any]) -> dict[str, Any]:
    return pods.row(PodReader().decoded(json.loads(json.dumps(pod))), NO_SNAPSHOT)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part)


@pytest.mark.heavy
@given(tenants.admissible)
def test_a_row_of_the_rest_has_bounded_texts_without_control_characters(pod: dict[str, Any]) -> None:
    found = row_of(pod)
    assert [text[:80] for text in texts_in(found) if len(text) > MAX_TEXT or not text.isprintable()] == []
    assert len(json.dumps(found)) < 32 * MAX_TEXT


@pytest.mark.heavy
@given(tenants.admissible)
def test_tables_keep_one_line_for_each_pod_and_other_lines_readable(pod: dict[str, Any]) -> None:
    both = [row_of(pod), row_of(NEIGHBOUR)]
    for form in (Format.TABLE, Format.WIDE):
        text = output.rows_text(both, tables.PODS, form)
        heads, hostile, neighbour = text.removesuffix("\n").split("\n")
        assert neighbour.startswith("other"), text[:200]
        assert hostile.isprintable()
        assert max(len(heads), len(neighbour)) <= MAX_LINE


@given(tenants.texts)
def test_no_cell_of_csv_is_a_formula_and_none_breaks_a_line(text: str) -> None:
    row = {"namespace": "other", "owner": text, "container": text, "group": {"owner": text}}
    columns = (output.TextColumn("OWNER", lambda row: row["owner"]), output.TextColumn("END", lambda _: "end"))
    written = output.rows_text([row, row], output.OutputTable("x", columns, lambda _: ""), Format.CSV)
    head, *cells = csv.reader(io.StringIO(written))
    assert (head, len(cells)) == (["OWNER", "END"], 2)
    for cell, end in cells:
        assert not cell.startswith(FORMULA), written[:100]
        assert end == "end"


@settings(max_examples=30)
@given(tenants.unseen)
def test_an_events_message_is_printable(pod: dict[str, Any]) -> None:
    watched = PodReader().decoded(json.loads(json.dumps(pod)))
    if watched.parsed.problems:
        nothing: Any = None  # problems are told without a look at the cluster
        code, message = pending_text.why_pending(watched, {}, {}, nothing)
        assert code == "InvalidRequest"
        assert message.isprintable()


@pytest.mark.parametrize("text", [*tenants.ESCAPES, *tenants.MARKUP, "x" * 100_000])
async def test_filter_answers_short_printable_reasons(world: World, text: str) -> None:
    annotations = dict.fromkeys(("vgpu.io/use-gpu-model", "vgpu.io/gang", "vgpu.io/node-policy"), text)
    pod = await world.create_pod(metadata={"annotations": annotations}, gpu_mem=1024)
    answer = await world.filter(pod)
    assert answer["NodeNames"] == []
    refusals = {**(answer["FailedNodes"] or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
    assert set(refusals) == {"n1", "n2", "n3"}
    for reason in refusals.values():
        assert reason.isprintable()
        assert reason[0].isalpha()
        assert len(reason) <= 200
