"""The history's folder: the spill, the state of the drain, and the SQLite file where no other database is given."""

from pathlib import Path


def spill(folder: Path) -> Path:
    """Return the directory of the spill's segments."""
    return folder / "spill"


def state_file(folder: Path) -> Path:
    """Return the file with the state of the drain."""
    return folder / "drain.json"


def sqlite_file(folder: Path) -> Path:
    """Return the SQLite file."""
    return folder / "history.db"
