"""Fingerprints of source folders and files: they tell whether the code of a figure has changed since its measurement.

A fingerprint is a hash over the C, CUDA C++ and Python files of a folder, or over one of them, without comments,
docstrings, blank lines, spaces inside lines, includes and imports: what remains decides what the programs do.
The hashes of the files are sorted, and paths are left out. So a rewritten comment or a moved file changes no
fingerprint, and an edited statement does.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

_C = re.compile(
    r"""(?P<drop> //[^\n]* | /\*.*?\*/ | ^[ \t]*\#[ \t]*include[^\n]* | \s+ )
    | (?P<keep> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | \w+ | . )""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_PYTHON = re.compile(
    r'''(?P<drop> \#[^\n]* | ^[ \t]*""".*?"""[ \t]*$ | ^[ \t]*(?:from[ ]\S+[ ])?import[ ](?:\([^)]*\)|[^\n]*)
      | (?<=\S)[ \t]+ )
    | (?P<keep> """.*?""" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \w+ | . )''',
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def of_folders(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the fingerprint of each folder or file below `root`. One that does not exist has an empty folder's."""
    return {folder: of_folder(root / folder) for folder in folders}


def of_folder(folder: Path) -> str:
    """Return the fingerprint of a folder or of a file: 16 hexadecimal digits."""
    digests = sorted(_digest(code(path)) for code, path in _sources(folder))
    return _digest("\n".join(digests))[:16]


def code_of_c(text: str) -> str:
    """Return the tokens of C without comments and includes, a token in each line."""
    return "\n".join(match["keep"] for match in _C.finditer(text) if match["keep"])


def code_of_python(text: str) -> str:
    """Return the lines of Python with their indentation, without comments, docstrings, imports and inner spaces."""
    lines = "".join(match["keep"] or "" for match in _PYTHON.finditer(text)).split("\n")
    return "\n".join(line for line in lines if line.strip())


_CODE: dict[str, Callable[[str], str]] = {".c": code_of_c, ".h": code_of_c, ".cu": code_of_c, ".py": code_of_python}


def _sources(folder: Path) -> list[tuple[Callable[[str], str], str]]:
    found = folder.rglob("*") if folder.is_dir() else [folder]
    paths = [path for path in found if path.suffix in _CODE and path.is_file()]
    return [(_CODE[path.suffix], path.read_text(encoding="utf-8")) for path in paths]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
