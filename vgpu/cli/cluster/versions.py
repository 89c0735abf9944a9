"""`vgpu version --server`: the version of each part of an installation beside this program's own."""

from collections.abc import Iterable
from typing import Any, Final

import vgpu
from vgpu.cli.cluster.output import OutputTable, TextColumn
from vgpu.domain import build_version

NAMED: Final = 3  # of the nodes that run a version
UNBUILT: Final = "run from a checkout: version unknown"
_OURS: Final = "vgpushare-"

VERSIONS: Final = OutputTable(
    "part",
    (
        TextColumn("PART", lambda row: row["part"]),
        TextColumn("VERSION", lambda row: row["version"]),
        TextColumn("WHERE", lambda row: row["where"]),
    ),
    lambda row: str(row["part"]),
)


def rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each version of each part; `found` is the REST's answer."""
    listed = [
        _row("vgpu", vgpu.__version__, "this program"),
        _row("admin", found["admin"], "the process that answered"),
        _row("extender", found["extender"], "the extender that it belongs to"),
    ]
    listed += [_row("deviceplugin", plugins["version"], _nodes(plugins["nodes"])) for plugins in found["devicePlugins"]]
    for image in found["images"]:
        if image["image"].partition("@")[0].rpartition("/")[2].startswith(_OURS):
            pods = f"{image['pods']} pod{'s' if image['pods'] > 1 else ''}, by the image's tag"
            listed.append(_row(image["container"], image["tag"], pods))
    return listed


def skew(listed: Iterable[dict[str, Any]]) -> list[str]:
    """Return the parts whose version is not that of this program.

    A digest in place of a version says nothing, nor does a part in a checkout, which no build has stamped: its row says
    so.
    """
    others: dict[str, list[str]] = {}
    for row in listed:
        is_known = not row["version"].startswith("sha256:")
        if is_known and not build_version.is_same_build(vgpu.__version__, row["version"]):
            others.setdefault(row["part"], []).append(row["version"])
    return [f"{part} {', '.join(dict.fromkeys(versions))}" for part, versions in others.items()]


def warning(different: list[str]) -> str:
    """Return a line about parts with other versions."""
    return f"version skew: this program is {vgpu.__version__}; {'; '.join(different)}"


def _row(part: str, version: str, where: str) -> dict[str, Any]:
    noted = f"{where}; {UNBUILT}" if build_version.is_unbuilt(version) else where
    return {"part": part, "version": version, "where": noted}


def _nodes(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} node{'s' if len(names) > 1 else ''}: {', '.join(names[:NAMED])}{more}"
