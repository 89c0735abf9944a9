"""Checks the C code: the function list, the rules for files and folders, the format, clang-tidy, the compiled files."""

import platform
import tempfile
from collections.abc import Collection
from pathlib import Path

from limiter import build
from limiter.build import declarations, function_list, headers, include_order, linters, macros, toolchain

_ROOT = build.SOURCES.parent

# Each folder may include those before it. common is what the library and the arbiter share.
_SRC = (
    *("common", "loader", "process", "region", "driver/functions", "driver", "container"),
    *("books", "books/pointers", "books/arrays", "books/graphs", "books/physical", "books/pools"),
    *("charge/nvml", "charge/release", "charge/reconcile", "charge/reserve", "charge/measure"),
    *("compute/turn", "compute/link", "compute/queue", "compute/gate"),
    *("hooks/pools", "hooks/memory", "hooks/graphs", "hooks/programs", "hooks/view", "main"),
)
_SCHEDULE = ("src/common", "arbiter/predict", "arbiter/watermark", "arbiter/tenant", "arbiter/schedule")
FOLDERS = {
    **include_order.in_order(*(f"src/{folder}" for folder in _SRC)),
    **include_order.in_order(*_SCHEDULE),
    "arbiter/job": ("src/common",),
    "arbiter/connection": ("src/common",),
    "arbiter/container": (*_SCHEDULE, "arbiter/job", "arbiter/connection"),
    "arbiter": (*_SCHEDULE, "arbiter/job", "arbiter/connection", "arbiter/container"),
}


def check() -> None:
    """Exit where a check fails."""
    check_list(function_list.read())
    include_order.check(_ROOT, FOLDERS, [build.SOURCES])
    declarations.check(_ROOT)
    macros.check(_ROOT)
    linters.check_format(build.c_files())
    sources = [path for path in build.c_files() if path.suffix == ".c"]
    linters.tidy(sources, build.flags())
    with tempfile.TemporaryDirectory() as scratch:
        for architecture in toolchain.ARCHITECTURES:
            build.build(architecture, Path(scratch))


def check_list(listed: Collection[str]) -> None:
    """Exit unless NVIDIA's headers, of all versions together, declare exactly the functions of the list."""
    wrong, known = [], set[str]()
    for folder in headers.FOLDERS:
        declared = headers.declared(folder, toolchain.compiler(platform.machine()))
        known |= declared
        if lacking := declared.difference(listed):
            wrong.append(f"nvidia/{folder} declares what functions.h lacks: {sorted(lacking)}")
    if unknown := set(listed) - known:
        wrong.append(f"functions.h lists what no header declares: {sorted(unknown)}")
    if wrong:
        raise SystemExit("; ".join(wrong))
