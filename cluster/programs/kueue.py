"""Kueue's manifests, and its manager, built from the Go module proxy at the version that kueue/go.mod pins here.

`python -m cluster.programs.kueue` builds them ahead of time: five minutes on two cores, once.
"""

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster import missing, progress
from cluster.programs import golang, pinned

PROGRAM = "kueue"
MANIFESTS = "config"  # Kueue's kustomizations

_MODULE = "sigs.k8s.io/kueue"
_PROGRAMS = pinned.Programs("Kueue", "kueue", Path(__file__).parent / "kueue", (f"{_MODULE}/cmd/{PROGRAM}",))


def ensure() -> Path:
    """Folder that holds the program and the manifests, built now if need be; raises missing.Missing."""
    folder = _PROGRAMS.ensure()
    if not (folder / MANIFESTS).exists():
        _copy_manifests(folder)
    return folder


def _copy_manifests(folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(dir=folder))
    copied = shutil.copytree(_source() / MANIFESTS, scratch / MANIFESTS, copy_function=shutil.copyfile)  # writable
    with contextlib.suppress(OSError):  # another process has copied them meanwhile
        copied.rename(folder / MANIFESTS)
    shutil.rmtree(scratch)


def _source() -> Path:
    """Return where the Go command keeps Kueue's source; raises missing.Missing."""
    done = subprocess.run(
        [golang.find(_PROGRAMS.module), "list", "-m", "-f", "{{.Dir}}", _MODULE],
        cwd=_PROGRAMS.module, env=golang.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise missing.Missing([f"Kueue's manifests (go list ended with {done.returncode})"])
    return Path(done.stdout.strip())


def main() -> None:
    progress.say(f"Kueue: {ensure()}")


if __name__ == "__main__":
    main()
