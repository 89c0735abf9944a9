"""Which words name a path, and which named paths exist."""

import pytest

from tests.contract.named_paths import Named, Tree, named_paths

FILES = (
    "README.md",
    "docs/adr/0015-gpu-time.md",
    "limiter/README.md",
    "limiter/src/charge/charge.c",
    "limiter/src/charge/reconcile.c",
    "tests/e2e/conftest.py",
)
TREE = Tree(FILES)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("see charge.c, or `prestart.py`.", ["charge.c", "prestart.py"]),
        ("(tests/e2e/conftest.py: fixtures)", ["tests/e2e/conftest.py"]),
        ("run tests/e2e.", ["tests/e2e"]),
        ("# src/charge/", ["src/charge"]),
        ("and/or, sys/mman, /run/vgpu/limits.c, https://example.org/limiter/x.py", []),
        ("limiter/*.py, limiter/src/$NAME.c, src/charge/ledger-*.c, any .c file, limiter/", []),
        ("limiter.local_state and docs.python", []),
        ("[the record](adr/0015.md#why), [a site](https://example.org/a.md), [above](#limits)", ["adr/0015.md"]),
    ],
)
def test_words_that_name_a_path(text: str, paths: list[str]) -> None:
    found = named_paths(text, TREE.folder_names_near("limiter/README.md"))
    assert [named.path for named in found] == paths


def test_the_line_of_a_named_path_is_counted_from_the_start_of_its_text() -> None:
    assert list(named_paths("one\ntwo charge.c\n[three](x.md)", ())) == [
        Named(2, "x.md", is_link=True),
        Named(1, "charge.c"),
    ]


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("charge.c", True),
        ("harge.c", False),
        ("charge/charge.c", True),
        ("limiter/charge.c", False),
        ("src/charge", True),
        ("src/charge/reconcile.c", True),
        ("src/attempt", False),
        ("tests/e2e", True),
        ("tests/driver", False),
        ("docs/adr/0015", True),
        ("docs/adr/0016", False),
    ],
)
def test_a_named_path_exists_from_the_root_or_from_a_folder_around_its_file(path: str, exists: bool) -> None:
    assert TREE.has(Named(0, path), "limiter/README.md") is exists


@pytest.mark.parametrize(
    ("target", "exists"),
    [("src/charge", True), ("../README.md", True), ("README.md", True), ("charge.c", False), ("tests/e2e", False)],
)
def test_a_link_is_followed_from_the_folder_of_its_document(target: str, exists: bool) -> None:
    assert TREE.has(Named(0, target, is_link=True), "limiter/README.md") is exists
