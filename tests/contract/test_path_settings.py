"""The paths in the settings of the tools match files: a pattern of a folder that has moved would silence nothing."""

import itertools
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch

import pytest

from tests.contract import repository

TOOLS = tomllib.loads((repository.ROOT / "pyproject.toml").read_text())["tool"]
RUFF = TOOLS["ruff"]


def without_braces(pattern: str) -> Iterator[str]:
    """Yield the patterns that `{a,b}/**` stands for."""
    parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
    return ("".join(chosen) for chosen in itertools.product(*parts))


def matches(pattern: str) -> bool:
    """Whether a file of the repository has a path that the pattern means: its own, or that of a folder around it."""
    ends = (pattern, f"{pattern}/*", pattern.removeprefix("**/"))
    return any(fnmatch(path, end) for path in repository.files() for end in ends)


@pytest.mark.parametrize("pattern", [*RUFF["extend-exclude"], *RUFF["lint"]["per-file-ignores"]])
def test_a_pattern_of_ruff_matches_a_file(pattern: str) -> None:
    assert all(matches(plain) for plain in without_braces(pattern))


@pytest.mark.parametrize("pattern", TOOLS["mypy"]["exclude"])
def test_a_pattern_of_mypy_matches_a_file(pattern: str) -> None:
    assert any(re.search(pattern, path) for path in repository.files())


@pytest.mark.parametrize("pattern", [*repository.UNCHECKED])
def test_a_pattern_of_these_tests_matches_a_file(pattern: str) -> None:
    assert matches(pattern)


def test_a_pattern_of_a_folder_that_is_gone_matches_none() -> None:
    assert not matches("benchmarks/gone/*")
    assert list(without_braces("{a,b/c}/**")) == ["a/**", "b/c/**"]
