"""Builds the walk program: alone, for a preloaded library, and with the limiter's sources linked in, for sanitizers."""

import subprocess
from enum import StrEnum
from pathlib import Path

from limiter import build
from tests.limiter.conftest import CHECK_LOCKS, UNHOOKED

HERE = Path(__file__).parent
_SOURCES = tuple(sorted((HERE / "program").glob("*.c")))
_CONSTRUCTOR = build.SOURCES / "main" / "start.c"  # clears the former image's place after an exec
_SANITIZED = ("-fno-sanitize-recover=all", CHECK_LOCKS, *map(str, UNHOOKED), str(_CONSTRUCTOR))


class Build(StrEnum):
    """How a walk and the limiter come together. gcc's sanitizers need both in one program."""

    PRELOADED = "preloaded"
    ADDRESS = "address"
    THREAD = "thread"


_OPTIONS: dict[Build, tuple[str, ...]] = {
    Build.PRELOADED: (),
    Build.ADDRESS: ("-fsanitize=address,undefined", *_SANITIZED),
    Build.THREAD: ("-fsanitize=thread", *_SANITIZED),
}


def compiled(folder: Path, kind: Build) -> Path:
    """Return the program of that kind in `folder`; builds it at the first call. Needs gcc."""
    program = folder / f"walk-{kind}"
    if not program.exists():
        command = ["gcc", *build.flags(), "-g", "-O1", "-Wno-error", "-w", *_OPTIONS[kind], *map(str, _SOURCES)]
        subprocess.run([*command, "-rdynamic", "-ldl", "-lpthread", "-o", str(program)], check=True)
    return program
