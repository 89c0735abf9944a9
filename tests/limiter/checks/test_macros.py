"""The rule that no macro hides how a function is left."""

from pathlib import Path

import pytest

from limiter.build import macros

CLEAN = """/* A macro that does not return; go on. */
#define TWICE(value) (2 * (value)) /* return */
#define BLOCK(call) \\
    do {            \\
        call;       \\
    } while (0)
int twice(int value) { return TWICE(value); }
"""


def test_macros_without_a_way_out_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "clean.c").write_text(CLEAN)
    macros.check(tmp_path)


@pytest.mark.parametrize(("way_out", "statement"), [("return", "if (x) return 1"), ("goto", "goto failed")])
def test_a_hidden_way_out_is_named(tmp_path: Path, way_out: str, statement: str) -> None:
    (tmp_path / "hidden.h").write_text(f"{CLEAN}# define TRY(x) \\\n    do {statement}; \\\n    while (0)\n")
    found = f"{tmp_path.name}/hidden.h: the macro TRY hides a {way_out}: write an inline function"
    assert macros.violations(tmp_path) == [found]
    with pytest.raises(SystemExit, match="hides a"):
        macros.check(tmp_path)
