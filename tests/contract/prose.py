"""The prose in a file: comments and docstrings of source code, the whole text of documents."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath
from typing import NamedTuple

C_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))(#[^\n]*)", re.MULTILINE)
LIKE_C = {".c", ".h", ".cu", ".map", ".mod", ".proto"}
DOCUMENTS = {".md", ""}  # a name without an ending: Makefile, .ci/run
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Passage(NamedTuple):
    """A piece of a file's text, and the line on which the piece starts."""

    line: int
    text: str


@cache
def prose(path: str, text: str) -> tuple[Passage, ...]:
    """The prose in the text of the file `path`."""
    suffix = PurePath(path).suffix
    if suffix == ".py":
        return (*_python_comments(text), *_docstrings(text))
    if suffix in DOCUMENTS:
        return (Passage(1, text),)
    pattern = C_STRING_OR_COMMENT if suffix in LIKE_C else HASH_COMMENT
    return tuple(Passage(_line_at(text, match.start()), match[1]) for match in pattern.finditer(text) if match[1])


def _python_comments(text: str) -> Iterator[Passage]:
    if "#" in text:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield Passage(token.start[0], token.string)


def _docstrings(text: str) -> Iterator[Passage]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
            yield Passage(node.body[0].lineno, docstring)


def _line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
