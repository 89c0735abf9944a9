"""What a call takes in the driver's own functions and what in the limiter: `driver_time.c` stands between the two."""

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import build

CUDA = "libcuda.so.1"


@contextmanager
def counted(env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment with that library in the driver's place."""
    with tempfile.TemporaryDirectory(prefix="between-") as name:
        folder = Path(name)
        (folder / CUDA).symlink_to(build.library())
        (folder / build.BELOW).symlink_to(_driver())
        before = env.get("LD_LIBRARY_PATH")
        yield {**env, "LD_LIBRARY_PATH": os.pathsep.join([name, *([before] if before else [])])}


def _driver() -> Path:
    """Return the path of the driver's library, as this process loads it."""
    ctypes.CDLL(CUDA)
    mapped = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
    return next(Path(path) for path in mapped if Path(path).name.startswith("libcuda.so"))
