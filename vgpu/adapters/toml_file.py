"""Reads a settings file in TOML, within bounds."""

import tomllib
from pathlib import Path
from typing import Any, Final

from vgpu.domain.errors import UnusableSetting

MAX_BYTES: Final = 1 << 20


def load(path: Path) -> dict[str, Any]:
    """Return what a file of at most 1 MiB has.

    Raises:
        UnusableSetting: the file cannot be read, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UnusableSetting(f"{path}: longer than {MAX_BYTES} bytes")
        return tomllib.loads(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise UnusableSetting(f"{path}: {error}") from None
