"""Which file system a path is on, from /proc/self/mountinfo.

https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
"""

from pathlib import Path
from typing import Final

_PLACE: Final = 4  # field: where the file system is mounted
_ESCAPED: Final = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def type_at(path: Path, table: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of a path's file system, such as `ext4` or `nfs4`; None where it is not known."""
    try:
        mounted = [_mount(line) for line in table.read_text(errors="surrogateescape").splitlines()]
        wanted = path.resolve()
    except OSError:
        return None
    found = [mount for mount in mounted if mount and wanted.is_relative_to(mount[0])]
    # Of two mounts at one place the later one covers the other.
    return max(enumerate(found), key=lambda numbered: (len(numbered[1][0].parts), numbered[0]))[1][1] if found else None


def _mount(line: str) -> tuple[Path, str] | None:
    """Return the place and the type of a mount."""
    before, _, after = line.partition(" - ")
    fields, kinds = before.split(" "), after.split(" ")
    if len(fields) <= _PLACE or not kinds[0]:
        return None
    place = fields[_PLACE]
    for escape, character in _ESCAPED.items():
        place = place.replace(escape, character)
    return Path(place), kinds[0]
