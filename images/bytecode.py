"""Bytecode of Python files, by the interpreter of the image: on a read-only root nothing can be compiled at the start.

The interpreter runs outside of the image, through the image's own loader. Bytecode is the same for all architectures.
"""

import subprocess
from pathlib import Path
from typing import Final

_LOADERS: Final = {
    "x86_64": "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "aarch64": "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1",
}


def compile_tree(tree: Path, folder: str, interpreter: Path, machine: str) -> None:
    """Compile all modules below `folder` of `tree`; `interpreter` is the tree of Debian's packages for this machine."""
    loader = interpreter / _LOADERS[machine]
    python: list[str | Path] = [loader, "--library-path", loader.parent, interpreter / "usr/bin/python3.11"]
    # Hashes instead of times, which are not compared at the start: the root is read-only.
    options: list[str | Path] = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", tree, "-p", "/"]
    environment = {"PYTHONHOME": str(interpreter / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
    subprocess.run(
        [*python, "-B", "-m", "compileall", *options, tree / folder],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
