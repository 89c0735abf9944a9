"""Texts of files, programs and servers for a terminal: without control characters, which would write to it."""


def printable(text: str) -> str:
    """Return a text of one line; `?` stands for what cannot be printed."""
    return "".join(character if character.isprintable() else "?" for character in text)


def printable_lines(text: str) -> str:
    """Return a text that may have several lines; `?` stands for what else cannot be printed."""
    return "\n".join(map(printable, text.split("\n")))
