"""Where a text uses a word that the project has replaced."""

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

BETWEEN_WORDS = r"[\s#*/]+"  # a phrase may go on in the next line of a comment
IDENTIFIER_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Retired(NamedTuple):
    """A retired word as a text spells it, the word's line, and what to write instead."""

    line: int
    found: str
    instead: str


class RetiredWords:
    """What is retired, and what to write instead.

    Args:
        phrases: words that follow each other, in upper or lower case.
        names: words by themselves or as parts of an identifier: `gizmo` in `gizmo_new`, `_GIZMO` and `GizmoPage`.
    """

    def __init__(self, phrases: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._phrases = {phrase.lower(): instead for phrase, instead in phrases.items()}
        self._names = names
        either = "|".join(BETWEEN_WORDS.join(map(re.escape, phrase.split())) for phrase in phrases)
        self._any_phrase = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)

    def found_in(self, text: str) -> list[Retired]:
        """Every use of a retired word in a text, by line."""
        uses = (
            (self._any_phrase, self._phrases, lambda found: re.sub(BETWEEN_WORDS, " ", found).lower()),
            (IDENTIFIER_PART, self._names, str.lower),
        )
        found = [
            Retired(text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead[key(match[0])])
            for pattern, instead, key in uses
            for match in pattern.finditer(text)
            if key(match[0]) in instead
        ]
        return sorted(found, key=attrgetter("line"))
