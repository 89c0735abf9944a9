"""The rule that a C header declares only functions that the `.c` file of its name defines."""

import re
from collections.abc import Collection
from pathlib import Path

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"^(?!static|#|typedef|extern)[A-Za-z][\w *]*?\b(\w+)\([^;{}]*\)[^;{}]*;", re.MULTILINE)
_DEFINED = re.compile(r"^(?!static|#|typedef)[A-Za-z][\w *]*?\b(\w+)\([^;{]*\)\s*\{", re.MULTILINE)


def violations(root: Path, exempt: Collection[str] = ()) -> list[str]:
    """Return a line for each function that a header below `root` declares and its `.c` file does not define.

    Headers are exempt by their path relative to `root`: those that repeat the declarations of another library.
    """
    return [
        f"{root.name}/{header.relative_to(root)} declares {name}, which {header.stem}.c does not define"
        for header in sorted(root.rglob("*.h"))
        if str(header.relative_to(root)) not in exempt
        for name in declared(header)
        if name not in _names(_DEFINED, header.with_suffix(".c"))
    ]


def declared(header: Path) -> list[str]:
    """Return the functions that a header declares."""
    return _names(_DECLARED, header)


def check(root: Path, exempt: Collection[str] = ()) -> None:
    """Stop the program with all violations, if there are any."""
    if found := violations(root, exempt):
        raise SystemExit("\n".join(found))


def _names(pattern: re.Pattern[str], file: Path) -> list[str]:
    return pattern.findall(_COMMENT.sub("", file.read_text())) if file.is_file() else []
