"""The rule that a macro of C code hides no `return` and no `goto`, so that a function's ways out can be seen in it."""

import re
from collections.abc import Iterator
from pathlib import Path

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:.*\\\n)*.*)", re.MULTILINE)
_WAY_OUT = re.compile(r"\b(return|goto)\b")


def violations(root: Path) -> list[str]:
    """Return a line for each macro in the C files below `root` that leaves the function in which it is used."""
    return [
        f"{root.name}/{file.relative_to(root)}: {fault}" for file in sorted(root.rglob("*.[ch]")) for fault in _of(file)
    ]


def check(root: Path) -> None:
    """Stop the program with all violations, if there are any."""
    if found := violations(root):
        raise SystemExit("\n".join(found))


def _of(file: Path) -> Iterator[str]:
    for name, body in _MACRO.findall(_COMMENT.sub("", file.read_text())):
        if way_out := _WAY_OUT.search(body):
            yield f"the macro {name} hides a {way_out[1]}: write an inline function"
