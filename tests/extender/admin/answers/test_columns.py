"""A field of a row is declared once: rows, lists, filters and the OpenAPI document follow from the declaration."""

from collections.abc import Sequence
from typing import Any

import pytest

from extender.admin.answers import paging
from extender.admin.answers.listed import columns, gpus, nodes, pending, pods, right_sizes, usage
from extender.admin.answers.listed.columns import AnswerSchema, Column, described_by
from extender.admin.answers.listed.filters import AtLeast, Flag, OneOf
from extender.admin.answers.queries import ListQuery, filtered_by
from tests.extender.admin.conftest import Admin

TRIAL: Sequence[Column[int]] = (
    Column(
        "half", int, "half of the number", 5, lambda number: number // 2, sortable=True, filter=AtLeast("minHalf", "")
    ),
    Column("even", bool, "", True, lambda number: number % 2 == 0, sortable=True, filter=Flag("whether it is even")),
    Column("text", str, "", "10", str, sortable=True, filter=OneOf("numbers")),
    Column("note", int | None, "", columns.NO_EXAMPLE, lambda _: None),
)


@filtered_by(TRIAL)
class TrialQuery(ListQuery):
    """Filters of numbers."""


@described_by(TRIAL)
class TrialSchema(AnswerSchema):
    """A number."""


def listed(query: dict[str, Any]) -> list[Any]:
    """The rows of the numbers from 0 to 9 that a query chooses, in its order."""
    asked = TrialQuery(**query).list_request()
    kind = columns.list_kind(TRIAL, lambda number: number, ("text",), name=lambda number: number)
    paging.check(asked, kind)
    found = sorted((n for n in range(10) if paging.matches(asked, n, kind)), key=paging.sort_key(asked, kind))
    return list(paging.page(found, asked, kind).items)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ({"text": ["3"]}, [{"half": 1, "even": False, "text": "3", "note": None}]),
        ({"minHalf": 4, "even": True, "fields": "text"}, [{"text": "8"}]),
        ({"minHalf": 4, "sort": "-text", "fields": "half,text"}, [{"half": 4, "text": "9"}, {"half": 4, "text": "8"}]),
    ],
)
def test_rows_fields_filters_and_the_order_follow_from_the_declaration(query: dict[str, Any], rows: list[Any]) -> None:
    assert listed(query) == rows


def test_a_field_that_is_not_chosen_is_not_computed() -> None:
    """A map of 5,000 cards asked for 16 fields, and the containers of each card were looked up all the same."""

    def fail(_: int) -> str:
        raise AssertionError

    costly = (*TRIAL, Column("costly", str, "", "", fail))
    kind = columns.list_kind(costly, lambda number: number, ("text",), name=lambda number: number)
    chosen: dict[str, Any] = {"fields": "text"}
    asked = TrialQuery(**chosen).list_request()
    assert list(paging.page([7], asked, kind).items) == [{"text": "7"}]


def test_the_schema_follows_from_the_declaration() -> None:
    document = TrialSchema.model_json_schema()
    assert list(document["properties"]) == ["half", "even", "text", "note"]
    half = document["properties"]["half"]
    assert (half["type"], half["description"], half["examples"]) == ("integer", "half of the number", [5])
    assert "required" not in document
    assert TrialSchema().model_dump() == {"half": 0, "even": False, "text": "", "note": None}


def test_a_filter_is_about_a_column_that_lists_can_be_sorted_by() -> None:
    """Lists are filtered by the columns that they keep."""
    declared = (*nodes.COLUMNS, *gpus.WITH_PODS, *pods.COLUMNS, *pending.OF_WAIT, *usage.COLUMNS, *right_sizes.COLUMNS)
    assert {column.name for column in declared if column.filter and not column.sortable} == set()  # type: ignore[attr-defined]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("path", "schema"),
    [("nodes", "NodeSchema"), ("gpus", "GpuSchema"), ("pods", "PodSchema"), ("pending", "PendingPodSchema")],
)
async def test_rows_have_the_fields_of_the_document(admin: Admin, path: str, schema: str) -> None:
    await admin.world.create_pod(gpu_mem=1024)
    (row, *_) = (await admin.get(f"/{path}"))["items"]
    document = await admin.get("/openapi.json")
    assert set(row) == set(document["components"]["schemas"][schema]["properties"])
