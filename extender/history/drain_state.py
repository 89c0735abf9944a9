"""The file in which the drain says how far it is."""

import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DrainState:
    """What the drain has done.

    Attributes:
        next_line: the number of the next line of the spill to store.
        unreadable: lines that could not be read.
        refused: records that the database refused.
        error: why the database does not take records now; empty where it does.
        failing_since_ms: since when it does not, Unix milliseconds; 0 where it does.
        alive_ms: when the drain last wrote this, every few seconds.
        replaced_ms: when the drain last found that the database's file was removed or replaced; 0 for never.
    """

    next_line: int = 0
    unreadable: int = 0
    refused: int = 0
    error: str = ""
    failing_since_ms: int = 0
    alive_ms: int = 0
    replaced_ms: int = 0


def read(path: Path) -> DrainState:
    """Read the state; a file that is missing or cannot be read is the state before the start."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=DrainState)
    except (OSError, msgspec.MsgspecError):
        return DrainState()


def write(path: Path, state: DrainState) -> None:
    """Replace the file at once; where the file system is full, the old one stays."""
    new = path.with_suffix(".new")
    try:
        new.write_bytes(msgspec.json.encode(state))
        new.replace(path)
    except OSError as error:
        log.debug("%s could not be written: %s", path, error)
