"""Every decision record has a date and a status, and the index lists the records in order of their numbers."""

import pytest

from tests.contract import repository
from tests.contract.decisions import Decision, Listed, decision, decisions, index

FOLDER = repository.ROOT / "docs" / "adr"
HEAD = "# 7 Title\n\n- Date: 2026-11-22\n- Status: {}\n{}\n## Context\n"


def test_the_index_has_every_record_in_order_with_its_title_and_status() -> None:
    records = [Listed(found.number, found.file, *found[2:5]) for found in decisions(FOLDER)]
    assert list(index((FOLDER / "README.md").read_text())) == records


def test_numbers_are_those_of_the_files_and_unique() -> None:
    assert [int(found.file[:4]) for found in decisions(FOLDER)] == [found.number for found in decisions(FOLDER)]
    assert len({found.number for found in decisions(FOLDER)}) == len(decisions(FOLDER))


def test_what_supersedes_and_what_is_superseded_name_each_other() -> None:
    records = {(found.number, found.file): found for found in decisions(FOLDER)}
    newer = {(old, new) for new, found in records.items() for old in found.supersedes}
    older = {(old, new) for old, found in records.items() for new in found.superseded_by}
    assert newer == older
    assert {record for pair in newer for record in pair} <= records.keys()
    assert all(old < new for old, new in newer)


def test_a_head_is_read() -> None:
    status = "accepted; superseded in part by [ADR 8](0008-b.md) (the thread), [ADR 9](0009-c.md) (the time)"
    found = decision("0007-a.md", HEAD.format(status, "- Supersedes: [ADR 1](0001-d.md)\n"))
    assert found == Decision("0007-a.md", 7, "Title", True, ((8, "0008-b.md"), (9, "0009-c.md")), ((1, "0001-d.md"),))
    for status in ("proposed", "superseded by [ADR 8](0008-b.md)"):
        assert not decision("0007-a.md", HEAD.format(status, "")).is_accepted


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("# Title\n\n- Date: 2026-11-22\n- Status: accepted\n\n", "# NUMBER TITLE"),
        ("# 7 Title\n\n## Context\nWhy.\n\n", "- Date"),
        ("# 7 Title\n\n- Date: 2026-11-22\n\n## Context\n", "- Status"),
        (HEAD.format("replaced", ""), "- Status"),
        (HEAD.format("superseded by ADR 8", ""), "- Status"),
        (HEAD.format("accepted", "It supersedes another one."), "- Supersedes"),
    ],
)
def test_a_record_without_its_head_is_refused(text: str, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        decision("0007-a.md", text)
