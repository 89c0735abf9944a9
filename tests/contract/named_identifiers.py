"""Which identifiers a text names in backticks, and which identifiers the code has.

A span such as `charge`, `usage.of_pod`, `turn_judge()` or `CUDA_ERROR_OUT_OF_MEMORY` names identifiers. Spans of any
other form (commands, values, paths) name none here. An identifier exists when a word of code is equal to it: code is
what remains of a file without comments and docstrings, and of a string in it only what looks like an identifier.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import NamedTuple

from tests.contract.prose import C_STRING_OR_COMMENT, DOCUMENTED, HASH_COMMENT, LIKE_C

SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCED = re.compile(r"^( *)(`{3,}).*?^ *\2", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?")
WORD = re.compile(r"[A-Za-z_]\w*")
SHAPED = re.compile(r"[A-Za-z]+[A-Z_]\w*|_\w+")  # words of a sentence in a string that have a capital or a `_` inside
PYTHON_FILE = re.compile(r"[\w/]+\.py\b")
SUFFIXES = {".c", ".h", ".cu", ".py", ".go", ".js", ".md", ".json", ".yaml", ".txt", ".lock"}  # endings of paths
C_CODE = {".c", ".h", ".cu", ".map"}


class Named(NamedTuple):
    """What stands between the backticks, and how many lines come before it in the text."""

    line: int
    text: str


def named_identifiers(text: str) -> Iterator[Named]:
    """Yield the spans of a text that name identifiers; fenced blocks have none."""
    unfenced = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    for span in SPAN.finditer(unfenced):
        if NAME.fullmatch(span[1]) and PurePath(span[1]).suffix not in SUFFIXES:
            yield Named(unfenced.count("\n", 0, span.start()), span[1])


def code_words(path: str, text: str) -> set[str]:
    """Return the words of a file's code, and those of its path."""
    suffix = PurePath(path).suffix
    if suffix in (".py", ".pyi"):
        code = " ".join(_python_code(text))
    elif suffix in LIKE_C or suffix in (".js", ".css"):
        code = C_STRING_OR_COMMENT.sub(lambda found: " " if found[1] else found[0], text)
    else:
        code = "" if suffix == ".md" else HASH_COMMENT.sub(" ", text)
    return set(WORD.findall(f"{path} {code}"))


class Code:
    """The words of all code.

    Args:
        words: of each file, by its path.
        others: words that exist in no file of the repository: of headers, of pages that are made from the code, and
                dotted names such as those of the chart's values.
    """

    def __init__(self, words: Mapping[str, set[str]], others: Iterable[str] = ()) -> None:
        self._words = words
        self._others = frozenset(others)
        self._anywhere = self._others.union(*words.values())
        self._modules: dict[str, set[str]] = defaultdict(set)
        self._c_folders: dict[str, set[str]] = defaultdict(set)
        for path, found in words.items():
            if path.endswith(".py"):
                for module in _module_names(path):
                    self._modules[module] |= found
            elif PurePath(path).suffix in C_CODE:
                self._c_folders[path.partition("/")[0]] |= found

    def has(self, name: str, file: str, passage: str = "") -> bool:
        """Whether the identifier exists that a passage of `file` names.

        A comment of C names what C has in the folder of the part, `limiter` or `simgpu`, or what a Python file has that
        the comment names too. In `module.name` the module has the name, in its own code or, for a package, in that of
        its modules; or the file itself has all parts.
        """
        *parents, last = parts = name.removesuffix("()").split(".")
        if parents and name in self._others:
            return True
        if self._words.get(file, set()).issuperset(parts):
            return True
        if module := self._module(parents):
            return last in module
        if PurePath(file).suffix not in C_CODE:
            return all(_has_word(part, self._anywhere) for part in parts)
        named = (self._words.get(path, set()) for path in PYTHON_FILE.findall(passage))
        known = self._others.union(self._c_folders[file.partition("/")[0]], *named)
        return all(_has_word(part, known) for part in parts)

    def _module(self, parents: list[str]) -> set[str] | None:
        names = (".".join(parents[:count]) for count in range(len(parents), 0, -1))
        return next((self._modules[name] for name in names if name in self._modules), None)


def _has_word(word: str, known: AbstractSet[str]) -> bool:
    """Whether a word is known; one with a `_` at its end stands for all that begin with it."""
    return word in known or (word.endswith("_") and any(name.startswith(word) for name in known))


def _module_names(path: str) -> Iterator[str]:
    """Yield what a text may call a module: its name with any of its packages; and likewise the packages themselves."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    for end in range(len(parts), 0, -1):
        for start in range(end):
            yield ".".join(parts[start:end])


def _python_code(text: str) -> Iterator[str]:
    docstrings = set(_docstrings(text))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            if token.start not in docstrings:
                yield from (SHAPED if " " in token.string else WORD).findall(token.string)
        elif token.type != tokenize.COMMENT:
            yield token.string


def _docstrings(text: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            yield node.body[0].lineno, node.body[0].col_offset
