"""Links, anchors, code blocks and inline code of a Markdown text."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


class Block(NamedTuple):
    """A code block: the line of its first line of text, from 1; its language, empty where none is named; its text."""

    line: int
    language: str
    text: str


class Span(NamedTuple):
    """A link's target, or inline code, and the first line of its paragraph, from 1."""

    line: int
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Every code block, fenced or indented."""
    for token in _tokens(text):
        if token.type in ("fence", "code_block"):
            start = (token.map or [0])[0]
            yield Block(start + (2 if token.type == "fence" else 1), token.info.strip(), token.content)


def links(text: str) -> Iterator[Span]:
    """Targets of links and images."""
    for line, token in _inline(text):
        target = token.attrGet("href") or token.attrGet("src")
        if target is not None:
            yield Span(line, str(target))


def inline_code(text: str) -> Iterator[Span]:
    """Code within a line of text."""
    yield from (Span(line, token.content) for line, token in _inline(text) if token.type == "code_inline")


def anchors(text: str) -> set[str]:
    """Names that a link may have after `#`: those that GitHub gives to headings."""
    found: dict[str, int] = {}
    for heading in _headings(text):
        name = _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count + 1)}


def _headings(text: str) -> Iterator[str]:
    for opening, inline in pairwise(_tokens(text)):
        if opening.type == "heading_open":
            yield "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


def _inline(text: str) -> Iterator[tuple[int, Token]]:
    for token in _tokens(text):
        for child in token.children or ():
            yield (token.map or [0])[0] + 1, child


@cache
def _tokens(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)
