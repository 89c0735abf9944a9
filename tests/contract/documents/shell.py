"""The commands in a text of the shell, also those in pipes, loops and substitutions."""

import shlex
from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PARSER = Parser(Language(tree_sitter_bash.language()))
_PROMPT = "$ "


class Command(NamedTuple):
    """A command: its line, from 1; its words without quotes; the text of its here-document."""

    line: int
    words: tuple[str, ...]
    stdin: str = ""


class NotShell(Exception):
    """A text is no text of the shell; says in which line."""


def commands(text: str) -> list[Command]:
    """Commands in the order of the text. Raises NotShell."""
    root = _PARSER.parse(text.encode()).root_node
    if root.has_error:
        raise NotShell(f"line {_first_error(root).start_point.row + 1} is no text of the shell")
    return [_command(node) for node in _found(root)]


def typed(text: str) -> str:
    """What is typed in a transcript: the lines after a prompt, on their lines; the other lines are empty."""
    return "\n".join(line.removeprefix(_PROMPT) if line.startswith(_PROMPT) else "" for line in text.splitlines())


def _found(node: Node) -> Iterator[Node]:
    if node.type in ("command", "declaration_command"):
        yield node
    for child in node.children:
        yield from _found(child)


def _command(node: Node) -> Command:
    if node.type == "declaration_command":
        return Command(node.start_point.row + 1, tuple(map(_text, node.children)))
    words = [_word(child) for child in node.children if child.is_named and child.type != "variable_assignment"]
    redirect = _here_document(node)
    if redirect is None:
        return Command(node.start_point.row + 1, tuple(words))
    stdin = "".join(_text(child) for child in redirect.children if child.type == "heredoc_body")
    return Command(node.start_point.row + 1, (*words, *_between(node, redirect)), stdin)


def _word(node: Node) -> str:
    text = _text(node)
    return text if "$(" in text else " ".join(shlex.split(text))


def _here_document(node: Node) -> Node | None:
    around = node.parent
    if around is None or around.type != "redirected_statement":
        return None
    return next((child for child in around.children if child.type == "heredoc_redirect"), None)


def _between(node: Node, redirect: Node) -> list[str]:
    """Return the words before a here-document that are no node: the parser leaves a single `-` out."""
    statement = node.parent
    if statement is None:
        return []
    start = statement.start_byte
    return (statement.text or b"")[node.end_byte - start : redirect.start_byte - start].decode().split()


def _text(node: Node) -> str:
    return (node.text or b"").decode()


def _first_error(node: Node) -> Node:
    wrong = next((child for child in node.children if child.has_error), None)
    return node if wrong is None else _first_error(wrong)
