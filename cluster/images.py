"""Container images that are built here, because the cluster has no registry.

`local/pause:1` is the sandbox; `local/base:1` has bash, busybox, glibc and /usr/bin/gpuprobe, no driver and no shim.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cluster import missing
from images import layers, oci

PAUSE = "docker.io/local/pause:1"
BASE = "docker.io/local/base:1"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")  # glibc looks here without a cache or a variable

_PAUSE_SOURCE = Path(__file__).parent / "pause.c"
_GLIBC = ("ld-linux-x86-64.so.2", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1")
_LINKS = {"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}
_FOLDERS = ("tmp", "proc", "sys", "dev", "etc", "root", "run", "usr/bin", "usr/lib64", str(LIBRARIES).lstrip("/"))


def build(folder: Path, probe: Path) -> list[Path]:
    """Write both archives into `folder` and return their paths; `probe` is the gpuprobe program."""
    folder.mkdir(parents=True)
    archives = [folder / "pause.tar", folder / "base.tar"]
    write(_pause(folder / "pause"), archives[0], PAUSE, {"Entrypoint": ["/pause"]})
    write(_base(folder / "base", probe), archives[1], BASE, {"Cmd": ["/bin/bash"]})
    return archives


def write(root: Path, target: Path, reference: str, settings: dict[str, list[str]]) -> None:
    """Pack the folder `root` as the one layer of an image."""
    layer = layers.pack(root, target.with_suffix(".layer"), level=1)
    settings = settings | {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]}
    oci.write([oci.Image(reference, "amd64", settings, [layer])], target)


def _pause(root: Path) -> Path:
    root.mkdir()
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl", "-Os", "-s", "-static"]
    subprocess.run([*compiler, "-o", root / "pause", _PAUSE_SOURCE], check=True)
    return root


def _base(root: Path, probe: Path) -> Path:
    make_root(root)
    for library in linked(probe):
        shutil.copy(library, root / str(LIBRARIES).lstrip("/") / library.name)
    shutil.copy(probe, root / "usr/bin/gpuprobe")
    return root


def make_root(root: Path) -> None:
    """Make the files of an image with bash, busybox and glibc."""
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    for link, target in _LINKS.items():
        (root / link).symlink_to(target)
    bash = Path(missing.which("bash") or "/bin/bash")
    for library in {*linked(bash), *_glibc()}:
        shutil.copy(library, root / str(LIBRARIES).lstrip("/") / library.name)
    (root / "usr/lib64/ld-linux-x86-64.so.2").symlink_to(LIBRARIES / "ld-linux-x86-64.so.2")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    shutil.copy(bash, root / "usr/bin/bash")
    _busybox(root / "usr/bin")


def _busybox(folder: Path) -> None:
    busybox = Path(missing.which("busybox") or "/bin/busybox")
    shutil.copy(busybox, folder / "busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for applet in set(applets) - {"busybox", "bash"}:
        (folder / applet).symlink_to("busybox")


def linked(*programs: Path, check: bool = True) -> set[Path]:
    """Libraries that programs and libraries load, under the loader's names; those that are not found are left out.

    With `check`, a file that is not dynamically linked is an error.
    """
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=check).stdout
    return {Path(path) for path in re.findall(r"=> (/\S+)", listed)}


def _glibc() -> Iterable[Path]:
    return [LIBRARIES / name for name in _GLIBC if (LIBRARIES / name).exists()]
