"""Which paths of the repository a text names.

A word names a path when it has a source file's ending (`charge.c`, `placement/fit.py`), or when it has a slash and
begins with a folder of the repository or a folder near the file (`tests/e2e`, in limiter/README.md `src/driver`).
A source file may be named by the end of its path. `docs/adr/0015` names the record of that number.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from posixpath import normpath
from typing import NamedTuple

SOURCE_ENDINGS = (".py", ".c", ".h", ".md", ".yaml", ".proto")
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)[^)\s]*\)")
WORD = re.compile(r"(?<![^\s`'\"(\[,;:=])[\w.][\w./-]*+(?![\w/*{<$@%])")


class Named(NamedTuple):
    """A path as a text spells the path, and how many lines come before it in the text."""

    line: int
    path: str
    is_link: bool = False


def named_paths(text: str, folder_names: Collection[str]) -> Iterator[Named]:
    """Relative links of Markdown, and words that look like paths; `folder_names`: what a path may begin with."""
    for link in LINK.finditer(text):
        yield Named(text.count("\n", 0, link.start()), link[1], is_link=True)
    for word in WORD.finditer(LINK.sub(lambda link: " " * len(link[0]), text)):
        path = word[0].rstrip(".-/")
        first, slash, last = path.partition("/")
        is_source = path.endswith(SOURCE_ENDINGS) and path not in SOURCE_ENDINGS
        if is_source or (slash and last and first in folder_names):
            yield Named(text.count("\n", 0, word.start()), path)


class Tree:
    """The files and folders that paths in a text may name."""

    def __init__(self, files: Collection[str]) -> None:
        folders = {str(folder) for file in files for folder in PurePosixPath(file).parents}
        numbers = {file.partition("-")[0] for file in files if file.startswith("docs/adr/")}
        self._paths = {*files, *folders, *numbers}
        self._ends = {end for file in files for end in _ends(file)}
        self._folder_names: dict[str, set[str]] = defaultdict(set)
        for folder in map(PurePosixPath, folders):
            self._folder_names[str(folder.parent)].add(folder.name)

    def folder_names_near(self, file: str) -> set[str]:
        """Names of the folders that lie beside the file or beside one of the folders around the file."""
        return {name for folder in PurePosixPath(file).parents for name in self._folder_names[str(folder)]}

    def has_path(self, path: str) -> bool:
        """Whether a file or folder has this path from the root."""
        return path in self._paths

    def has(self, named: Named, file: str) -> bool:
        """Whether the path that `file` names exists."""
        folders = [str(folder) for folder in PurePosixPath(file).parents]
        if named.is_link:
            return self.has_path(normpath(f"{folders[0]}/{named.path}"))
        return named.path in self._ends or any(normpath(f"{folder}/{named.path}") in self._paths for folder in folders)


def _ends(file: str) -> Iterator[str]:
    parts = file.split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))
