"""Unpacks parts of what `pack` wrote: `python -m cluster.gpu_machine.unpack PART [TARGET]`, on Python alone.

Each part adds to TARGET (/opt/vgpushare). The file `environment` there is for the shell: `. TARGET/environment`.
"""

import argparse
import lzma
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TARGET = Path("/opt/vgpushare")
REPOSITORY = Path(__file__).parents[2]

_PACKAGES = "packages-"  # then the version of Python that they are for
_ENVIRONMENT = """# For a shell in which the cluster runs with what was brought to {target}.
export PATH={target}/bin:$PATH
export LD_LIBRARY_PATH={target}/lib:$LD_LIBRARY_PATH
export PYTHONPATH={target}/site:$PYTHONPATH
export XDG_CACHE_HOME={target}/cache
export VGPU_IMAGES={target}/images
"""


class NotUnpackedError(Exception):
    """A part cannot be unpacked here; the message says why."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Unpack the part that the command line names. Raises SystemExit."""
    parser = argparse.ArgumentParser(prog="python -m cluster.gpu_machine.unpack", description=__doc__.splitlines()[0])
    parser.add_argument("part", type=Path, help="a folder part-N that `make gpu-pack` has written")
    parser.add_argument(
        "target", type=Path, nargs="?", default=TARGET, help="the folder to add to (default: %(default)s)"
    )
    asked = parser.parse_args(arguments)
    try:
        unpack(asked.part, asked.target)
    except NotUnpackedError as reason:
        parser.exit(1, f"{parser.prog}: {reason}\n")


def unpack(part: Path, target: Path = TARGET) -> None:
    """Add a part to `target`. Raises NotUnpackedError."""
    target = target.absolute()
    archives = sorted(part.glob("*.tar.xz"))
    if not archives:
        raise NotUnpackedError(f"{part} has no *.tar.xz: it is not a part that `make gpu-pack` has written")
    _check_python(archives)
    target.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda archive: _extract(archive, target), archives))
    (target / "environment").write_text(_ENVIRONMENT.format(target=shlex.quote(str(target))))
    busybox = target / "bin" / "busybox"
    if busybox.exists() and not shutil.which("ip"):
        (target / "bin" / "ip").unlink(missing_ok=True)
        (target / "bin" / "ip").symlink_to("busybox")


def _check_python(archives: Sequence[Path]) -> None:
    own = "{}.{}".format(*sys.version_info)
    if not hasattr(tarfile, "tar_filter"):
        raise NotUnpackedError(f"Python {sys.version.split()[0]} is too old: 3.11.4 or later")
    for archive in archives:
        name = archive.name.removeprefix(_PACKAGES)
        if archive.name != name and not name.startswith(f"{own}-"):
            wanted = name.split("-")[0]
            raise NotUnpackedError(
                f"{archive.name} is for Python {wanted}, and this is {own}: run it with python{wanted}, or pack again "
                f"with VGPU_GPU_PYTHON_VERSION={own}"
            )


def _extract(archive: Path, target: Path) -> None:
    try:
        with tarfile.open(archive, "r:xz") as opened:
            for entry in opened.getmembers():  # before tarfile would, which fails where another thread is faster
                (target / entry.name).parent.mkdir(parents=True, exist_ok=True)
            opened.extractall(target, filter="tar")
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise NotUnpackedError(f"{archive} is damaged ({error}): bring it again") from None
    except OSError as error:
        raise NotUnpackedError(f"{archive}: {error}") from None
    wheels = sorted((target / "wheels").glob("*.whl")) if archive.name.startswith(_PACKAGES) else []
    if wheels:
        options = ["--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", str(target / "site")]
        if subprocess.run([sys.executable, "-m", "pip", "install", "-q", *options, *wheels], check=False).returncode:
            raise NotUnpackedError(f"pip cannot install the packages of {archive}: see above")
    if archive.name.startswith("limiter-"):
        shutil.copytree(target / "repository", REPOSITORY, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
