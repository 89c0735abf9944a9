"""The tests that docs/security.md names exist."""

import re

import pytest

from tests.contract import repository

ROOT = repository.ROOT
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize(("file", "test"), sorted(set(NAMED.findall((ROOT / "docs/security.md").read_text()))))
def test_a_named_test_exists(file: str, test: str) -> None:
    assert re.search(rf"^(async )?def {test}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE)


def test_the_table_names_tests() -> None:
    assert len(NAMED.findall((ROOT / "docs/security.md").read_text())) > 20
