"""Since when answers of the admin REST are old, in lines for people. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

MAX_NODES: Final = 5
_HISTORY: Final = ("/usage", "/rightsize", "/history")


def lines(path: str, answer: Any) -> list[str]:
    """Return a line for the whole answer to a path, and one for each node that was last heard of some time ago."""
    if not isinstance(answer, Mapping):
        return []
    found = []
    if since := answer.get("staleSince"):
        found.append(_whole(path, str(since)))
    if began := answer.get("storedSince"):
        found.append(f"the history begins at {began}: nothing earlier is counted (docs/history.md says what keeps it)")
    items = answer.get("items")
    silent = _silent(items if isinstance(items, list) else ())
    found += [
        f"node {node} was last heard of at {since}: what is shown of it is of then"
        for node, since in list(silent.items())[:MAX_NODES]
    ]
    if len(silent) > MAX_NODES:
        found.append(f"and {len(silent) - MAX_NODES} more nodes")
    return found


def _whole(path: str, since: str) -> str:
    if path in _HISTORY:
        return f"the history is stored until {since}: nothing later is counted yet; vgpu doctor says why it stays so"
    return f"vgpushare has heard nothing since {since}: what is shown is of then; vgpu doctor says why"


def _silent(rows: Iterable[Any]) -> dict[str, str]:
    """Return when each silent node of the rows was last heard of, by the node's name."""
    known = (row for row in rows if isinstance(row, Mapping) and row.get("staleSince"))
    return {str(row.get("node") or row.get("name")): str(row["staleSince"]) for row in known}
