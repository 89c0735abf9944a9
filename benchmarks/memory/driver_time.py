"""Environments in which the time in the driver's own functions is measured apart from the time in the limiter."""

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import build

CUDA = "libcuda.so.1"


@contextmanager
def measured(env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment with `driver_time.c` between the limiter and the driver."""
    with tempfile.TemporaryDirectory(prefix="driver-time-") as name:
        folder = Path(name)
        (folder / CUDA).symlink_to(build.library())
        (folder / build.REAL_DRIVER).symlink_to(_driver())
        before = env.get("LD_LIBRARY_PATH")
        yield {**env, "LD_LIBRARY_PATH": os.pathsep.join([name, *([before] if before else [])])}


def _driver() -> Path:
    """Return the path of the driver's library, as this process loads it."""
    ctypes.CDLL(CUDA)
    mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
    return next(Path(path) for path in mapped if Path(path).name.startswith("libcuda.so"))
