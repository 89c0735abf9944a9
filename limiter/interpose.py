"""Loads the limiter into the running process, without LD_PRELOAD: it interposes a proxy library before the driver.

The loader answers each request for `libcuda.so.1` with the first library of that soname that was loaded. So a proxy is
loaded under that soname first: a library without code that depends on the limiter and on the real library, in this
order. A lookup in its handle finds the limiter's functions where there are any, and the driver's everywhere else; no
function has to be listed. NVML gets a proxy too, and both get one under their names without a version. The proxies must
be loaded before the process loads the real libraries.
"""

import atexit
import ctypes
import os
import subprocess
import sys
import warnings
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from limiter import launch, local_keeper
from limiter.host import Host
from limiter.installation import LIBRARY, LimiterError, installed, library_path
from limiter.local_state import LocalAllocation
from vgpu.domain.formats.limits import Limits

_CUDA: Final = "libcuda.so.1"
_NVML: Final = "libnvidia-ml.so.1"
_KINDS: Final = {_CUDA: "cuda", _NVML: "nvml"}

# Runs in a process of its own: the library that it loads to find the path must not be loaded in this process.
_FIND: Final = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
stem = sys.argv[1].removesuffix("1")
print(next(path for line in open("/proc/self/maps") if (path := line[73:].strip()).rpartition("/")[2].startswith(stem)))
"""


def preload(wanted: Limits, env: MutableMapping[str, str], host: Host) -> None:
    """Put the limits in force in this process, and set `env` for its children. Raises LimiterError.

    Without a driver it warns, as `vgpu run` does: this process can use no GPU, and its children have the limits.
    Does nothing where they are in force already, as in a child that runs its parent's script again (multiprocessing).
    """
    if launch.has_inherited(wanted, env):
        refuse_bypassed()
        return
    refuse_loaded()
    real = {soname: path for soname in _KINDS if (path := find_library(soname, env))}
    if _CUDA not in real:
        warnings.warn(
            f"no GPU can be used: {_CUDA} is not found; the limits hold for children that start once it can",
            RuntimeWarning,
            stacklevel=3,
        )
    allocation = launch.allocate(wanted, env, sys.orig_argv, host)
    atexit.register(_remove, allocation, os.getpid())
    env.update({**launch.variables(allocation.folder, env), launch.ASKED_ENV: launch.describe(wanted)})
    for soname, path in real.items():
        load_proxy(soname, path, allocation.folder)


def refuse_bypassed() -> None:
    """Raise LimiterError where this process has inherited its limits, but was started without the library."""
    if not is_loaded(LIBRARY):
        raise LimiterError(
            f"{launch.LIMITS_ENV} names the limits of this process, but {LIBRARY} is not loaded: "
            f"start it with {launch.PRELOAD_ENV} as in the environment of its parent"
        )


def refuse_loaded() -> None:
    """Raise LimiterError where this process has loaded one of the libraries: its calls would bypass the limiter."""
    for name in (LIBRARY, *_KINDS):
        if is_loaded(name):
            raise LimiterError(f"{name} is loaded already: limit a process before it first uses CUDA or NVML")


def is_loaded(name: str) -> bool:
    """Whether a library of this name is loaded in this process."""
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def find_library(soname: str, env: MutableMapping[str, str]) -> Path | None:
    """Return where the loader would find a library, or None."""
    command = [sys.executable, "-I", "-S", "-c", _FIND, soname]
    found = subprocess.run(command, env=dict(env), capture_output=True, text=True, check=False)
    return Path(found.stdout.strip()) if found.returncode == 0 else None


def load_proxy(soname: str, real: Path, folder: Path) -> None:
    """Load the proxy under the name of the real library. The folder must hold no other files of these names."""
    kind = _KINDS[soname]
    ctypes.CDLL(str(library_path()))
    proxy = installed(f"libvgpushare-{kind}.so")
    names = installed(f"libvgpushare-{kind}-names.so")
    (folder / f"libvgpu-real-{kind}.so").symlink_to(real)
    for name in (soname, soname.removesuffix(".1")):
        (folder / name).symlink_to(proxy)
    (folder / names.name).symlink_to(names)
    ctypes.CDLL(str(folder / soname))  # by its path: LD_LIBRARY_PATH goes before the library's own search path
    ctypes.CDLL(str(folder / names.name))


def _remove(allocation: LocalAllocation, owner: int) -> None:
    """Remove the files when the process that created them ends; a forked child that ends earlier leaves them."""
    if os.getpid() == owner:
        local_keeper.release(allocation)
