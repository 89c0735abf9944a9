"""Texts of files, programs, cards and servers as they are shown: without control characters, which a terminal obeys."""


def line(text: str) -> str:
    """Return a text of one line; `?` stands for what cannot be printed."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "?" for character in text)


def lines(text: str) -> str:
    """Return a text that may have several lines; `?` stands for what else cannot be printed."""
    return "\n".join(map(line, text.split("\n")))
