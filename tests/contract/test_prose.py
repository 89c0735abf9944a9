"""What the prose of a file is."""

import pytest

from tests.contract.prose import Passage, prose

PYTHON = '''"""Module."""
text = "# no comment"  # a comment
class Type:
    """Type.

    More."""
    def method(self):
        "Method."
        return """no docstring"""
'''
C = 'x = "// no comment \\"/* nor here";\n/* one\n * comment */ y = 1; // two\n'
YAML = "# one\nkey: a#b # two\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            PYTHON,
            [(2, "# a comment"), (1, "Module."), (4, "Type.\n\n    More."), (8, "Method.")],
        ),
        ("a.c", C, [(2, "/* one\n * comment */"), (3, "// two")]),
        ("a.yaml", YAML, [(1, "# one"), (2, "# two")]),
        ("Makefile", YAML, [(1, YAML)]),
        ("a.md", YAML, [(1, YAML)]),
    ],
)
def test_prose_of_a_file(path: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert prose(path, text) == tuple(Passage(*place) for place in expected)
