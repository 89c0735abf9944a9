"""Words that the project has replaced do not come back, in no file and in no file's name."""

import pytest

from tests.contract import repository
from tests.contract.retired_words import Retired, RetiredWords

WORDS = RetiredWords(phrases={"By gizmo time": "on time"}, names={"gizmo": "timer"})


def test_no_retired_word_is_used() -> None:
    words = RetiredWords(**repository.settings()["retired-words"])
    uses = [
        f"{file}:{retired.line}: {retired.found!r}: write {retired.instead!r}"
        for file in repository.checked_files()
        for retired in words.found_in(repository.text_of(file))
    ]
    assert not uses, "words of [tool.vgpushare.retired-words] in pyproject.toml:\n" + "\n".join(uses)


def test_no_file_has_a_retired_name() -> None:
    words = RetiredWords(**repository.settings()["retired-words"])
    uses = [f"{file}: call it {use.instead!r}" for file in repository.files() for use in words.found_in(file)]
    assert not uses, "names of [tool.vgpushare.retired-words] in pyproject.toml:\n" + "\n".join(uses)


@pytest.mark.parametrize(
    ("text", "found", "instead"),
    [
        ("1 ms by Gizmo time", ["by Gizmo time", "Gizmo"], ["on time", "timer"]),
        ("by gizmo\n * time", ["by gizmo * time", "gizmo"], ["on time", "timer"]),
        ("gizmo_new(), newGizmo", ["gizmo", "Gizmo"], ["timer", "timer"]),
        ("class GizmoPage: OLD_GIZMO", ["Gizmo", "GIZMO"], ["timer", "timer"]),
        ('#include "region/old_gizmo.h"', ["gizmo"], ["timer"]),
    ],
)
def test_a_retired_word_is_found(text: str, found: list[str], instead: list[str]) -> None:
    uses = WORDS.found_in(text)
    assert ([use.found for use in uses], [use.instead for use in uses]) == (found, instead)


@pytest.mark.parametrize("text", ["gizmos", "GIZMOS", "the gizmos.c", "by time"])
def test_a_similar_word_is_not(text: str) -> None:
    assert not WORDS.found_in(text)


def test_the_line_of_a_use() -> None:
    assert WORDS.found_in("one\ntwo\nthe gizmo\n") == [Retired(3, "gizmo", "timer")]
