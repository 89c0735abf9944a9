"""The Markdown files of the repository, and what their code blocks are."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.contract import repository
from tests.contract.documents import markdown, shell

# Decisions and changes are of their time: what they mention may have gone since.
OF_THEIR_TIME = ("docs/adr/", "CHANGELOG.md")


class Page(NamedTuple):
    """A Markdown file: its path from the root, and its text."""

    path: str
    text: str

    @property
    def is_of_its_time(self) -> bool:
        """Whether the page says what was, and not what is."""
        return self.path.startswith(OF_THEIR_TIME)


class Written(NamedTuple):
    """A command in a code block, and where it is: `docs/guide.md:12`."""

    where: str
    command: shell.Command


@cache
def pages() -> tuple[Page, ...]:
    """Every Markdown file."""
    paths = (path for path in repository.files() if path.endswith(".md"))
    return tuple(Page(path, (repository.ROOT / path).read_text()) for path in paths)


def commands(page: Page) -> Iterator[Written]:
    """The commands in a page's code blocks of the shell. Raises shell.NotShell."""
    for block in markdown.blocks(page.text):
        for command in shell.commands(commands_in(block)):
            yield Written(f"{page.path}:{block.line + command.line - 1}", command)


def commands_in(block: markdown.Block) -> str:
    """The part of a code block that a reader types into a shell."""
    if block.language == "console":
        return shell.typed(block.text)
    return block.text if block.language == "sh" else ""


def manifests(page: Page) -> Iterator[tuple[str, str]]:
    """Where YAML and JSON are written, in blocks of their own and as input of kubectl, and their text."""
    for block in markdown.blocks(page.text):
        if block.language in ("yaml", "json"):
            yield f"{page.path}:{block.line}", block.text
    for where, command in commands(page):
        if command.words[0] == "kubectl" and command.stdin:
            yield where, command.stdin
