"""The decision records in docs/adr: number, title, date, status, and which other records they supersede."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LINK = r"\[ADR (\d+)\]\(([\w.-]+)\)"
WHAT = r" \([^()]+\)"
TITLE = re.compile(r"# (?P<number>\d+) (?P<title>.+)")
DATE = re.compile(r"- Date: \d{4}-\d\d-\d\d")
STATUS = re.compile(
    rf"- Status: (?:proposed|accepted|superseded by {LINK}|"
    rf"accepted; superseded in part by {LINK}{WHAT}(?:, {LINK}{WHAT})*)"
)
SUPERSEDES = re.compile(rf"- Supersedes(?:: {LINK}| in part: {LINK}{WHAT})(?:, {LINK}(?:{WHAT})?)*")
ROW = re.compile(r"\| \[(\d+)\]\(([\w.-]+)\) \| [^|]+ \| (.+) \| ([^|]+) \|")
INDEX_LINK = re.compile(r"\[(\d+)\]\(([\w.-]+)\)")


class Decision(NamedTuple):
    """A record: its file's name, and what its head says."""

    file: str
    number: int
    title: str
    is_accepted: bool
    superseded_by: tuple[tuple[int, str], ...] = ()
    supersedes: tuple[tuple[int, str], ...] = ()


class Listed(NamedTuple):
    """A row of the index."""

    number: int
    file: str
    title: str
    is_accepted: bool
    superseded_by: tuple[tuple[int, str], ...] = ()


def decision(file: str, text: str) -> Decision:
    """Read the head of a record. Raises ValueError, which names what is missing."""
    title, empty, date, status, supersedes, *_ = text.split("\n", 5)
    if not (heading := TITLE.fullmatch(title)) or empty:
        raise ValueError(f"{file}: must begin with `# NUMBER TITLE` and an empty line")
    if not DATE.fullmatch(date):
        raise ValueError(f"{file}: must have `- Date: YYYY-MM-DD` in line 3")
    if not STATUS.fullmatch(status):
        raise ValueError(
            f"{file}: must have `- Status: proposed`, `- Status: accepted`, `- Status: superseded by [ADR N](FILE)` or "
            "`- Status: accepted; superseded in part by [ADR N](FILE) (WHAT), ...` in line 4"
        )
    if supersedes and not SUPERSEDES.fullmatch(supersedes):
        raise ValueError(f"{file}: line 5 must be empty, or `- Supersedes[ in part]: [ADR N](FILE)[ (WHAT)], ...`")
    accepted = status.startswith("- Status: accepted")
    return Decision(
        file, int(heading["number"]), heading["title"], accepted, _links(LINK, status), _links(LINK, supersedes)
    )


def index(text: str) -> Iterator[Listed]:
    """Yield the rows of the index, in its order."""
    for row in ROW.finditer(text):
        number, file, title, status = row.groups()
        yield Listed(int(number), file, title, status.startswith("accepted"), _links(INDEX_LINK, status))


def decisions(folder: Path) -> list[Decision]:
    """Read every record of a folder, by number."""
    return [decision(path.name, path.read_text()) for path in sorted(folder.glob("[0-9]*.md"))]


def _links(pattern: str | re.Pattern[str], text: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(number), file) for number, file in re.findall(pattern, text))
