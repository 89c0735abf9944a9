"""The log of a part: one line for each record, whatever tenants wrote into the texts that it quotes.

A name, a path or an error of another program can hold line breaks and terminal escapes. Quoted as they are, they would
forge records, and obey in the terminal of whoever reads the log.
"""

import codecs
import logging
import sys
from typing import Final

MAX_MESSAGE: Final = 16_384  # an object of a tenant has up to 1.5 MB
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_INDENT: Final = "  "  # of tracebacks: a record begins in the first column, with its time
_ESCAPE: Final = codecs.getencoder("unicode_escape")  # read from its file now: later there may be no file descriptor


def begin(level: str) -> None:
    """Log records of this process from `level` on to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(_FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


class LineFormatter(logging.Formatter):
    """Formats a record as one printable line; the traceback of an exception follows in indented lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the record without its traceback."""
        return escaped(super().formatMessage(record)[:MAX_MESSAGE])

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        """Return a traceback; the exceptions in it may quote tenants too."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join(_INDENT + escaped(line[:MAX_MESSAGE]) for line in lines)


def escaped(text: str) -> str:
    """Return a text with escapes, as Python writes them, in place of what cannot be printed."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _ESCAPE(character)[0].decode() for character in text)
