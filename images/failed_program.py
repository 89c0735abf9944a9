"""What to say of a program of the build that failed."""

import shlex
import subprocess
from typing import Final

_SAID: Final = 2000  # the last characters of what the program said


def words(error: subprocess.CalledProcessError) -> str:
    """Return the command, its status, and what it said where that was not shown already."""
    said = (error.stderr or b"").decode(errors="replace").strip()[-_SAID:]
    return f"{shlex.join(map(str, error.cmd))}: status {error.returncode}\n{said}".rstrip()
