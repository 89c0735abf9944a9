"""Which allocations of a node are in use: a container has its limits file mounted from its start to its end."""

import re
from collections.abc import Mapping
from typing import Final

# The root of a mount, in proc(5)'s mountinfo: the path of the file within its file system.
_LIMITS: Final = re.compile(r"^\d+ \d+ \S+ \S*/allocations/([^/\s]+)/limits ", re.MULTILINE)


def in_use(mountinfos: Mapping[int, str]) -> dict[str, int]:
    """Return the allocations that a process has mounted, each with the lowest pid. `mountinfos`: by pid."""
    found: dict[str, int] = {}
    for pid, text in sorted(mountinfos.items()):
        for allocation in _LIMITS.findall(text):
            found.setdefault(allocation, pid)
    return found
