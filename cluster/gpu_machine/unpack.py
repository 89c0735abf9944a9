"""Unpacks parts of what `pack` wrote: `python -m cluster.gpu_machine.unpack PART [TARGET]`, on Python alone.

Each part adds to TARGET (/opt/vgpushare). The file `environment` there is for the shell: `. TARGET/environment`.
"""

import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TARGET = Path("/opt/vgpushare")
REPOSITORY = Path(__file__).parents[2]

_ENVIRONMENT = """# For a shell in which the cluster runs with what was brought to {target}.
export PATH={target}/bin:$PATH
export LD_LIBRARY_PATH={target}/lib:$LD_LIBRARY_PATH
export PYTHONPATH={target}/site:$PYTHONPATH
export XDG_CACHE_HOME={target}/cache
export VGPU_IMAGES={target}/images
"""


def main(part: Path, target: Path = TARGET) -> None:
    """Add a part to `target`."""
    target.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda archive: _extract(archive, target), sorted(part.glob("*.tar.xz"))))
    (target / "environment").write_text(_ENVIRONMENT.format(target=target))
    busybox = target / "bin" / "busybox"
    if busybox.exists() and not shutil.which("ip"):
        (target / "bin" / "ip").unlink(missing_ok=True)
        (target / "bin" / "ip").symlink_to("busybox")


def _extract(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as opened:
        for entry in opened.getmembers():  # before tarfile would, which fails where another thread is faster
            (target / entry.name).parent.mkdir(parents=True, exist_ok=True)
        opened.extractall(target, filter="tar")
    wheels = sorted((target / "wheels").glob("*.whl")) if archive.name.startswith("packages-") else []
    if wheels:
        options = ["--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", str(target / "site")]
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *wheels], check=True)
    if archive.name.startswith("limiter-"):
        shutil.copytree(target / "repository", REPOSITORY, dirs_exist_ok=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
