"""The rule that a header declares only what the `.c` file of its name defines."""

from pathlib import Path

from limiter import build
from limiter.build import declarations

HEADER = """/* void in_a_comment(void); */
#define MACRO(x) other(x)
struct pair { int (*call)(int); };
int defined(int x) __attribute__((pure));
static inline int here(void) { return 1; }
"""


def test_a_header_may_declare_what_its_file_defines(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text(HEADER)
    (tmp_path / "one.c").write_text("int defined(int x) {\n    return x;\n}\n")
    assert declarations.violations(tmp_path) == []


def test_a_declaration_of_another_file_s_function_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text(HEADER + "void *foreign(const char *name,\n              int count);\n")
    (tmp_path / "one.c").write_text("int defined(int x) { return x; }\nstatic void *foreign(void) { return 0; }\n")
    name = tmp_path.name
    assert declarations.violations(tmp_path) == [f"{name}/one.h declares foreign, which one.c does not define"]


def test_the_rule_reads_the_limiter_s_headers() -> None:
    """Without declarations the rule would pass without a check."""
    names = declarations.declared(build.SOURCES / "charge" / "reserve" / "charge.h")
    assert "charge_reserve" in names
