"""Prometheus and promtool, built from the Go module proxy at the version that cluster/prometheus/go.mod pins.

They are kept beside Kubernetes' programs (cluster/binaries.py). `python -m cluster.prometheus` builds them ahead of
time: six minutes on two cores, once.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster import binaries, golang, missing, progress

PROGRAMS = ("prometheus", "promtool")
MODULE = Path(__file__).parent / "prometheus"

_WITHOUT_SERVICE_DISCOVERY = "remove_all_sd"  # Prometheus' build tag: a third of its code is clients of clouds


def folder() -> Path:
    """Folder of the programs, which may not be built yet."""
    return binaries.cache() / f"prometheus-{hashlib.sha256((MODULE / 'go.mod').read_bytes()).hexdigest()[:12]}"


def is_built() -> bool:
    return all((folder() / program).exists() for program in PROGRAMS)


def ensure() -> Path:
    """Folder that holds the programs, built now if need be; raises missing.Missing with what is lacking."""
    if not is_built():
        _build(folder())
    return folder()


def _build(target: Path) -> None:
    go = golang.find(MODULE)
    target.parent.mkdir(parents=True, exist_ok=True)
    progress.say(f"building Prometheus into {target}: six minutes on two cores, once")
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}."))
    packages = [f"github.com/prometheus/prometheus/cmd/{program}" for program in PROGRAMS]
    flags = ["-trimpath", "-ldflags", "-s -w", "-tags", _WITHOUT_SERVICE_DISCOVERY]
    command: list[str | Path] = [go, "build", *flags, "-o", f"{scratch}/", *packages]
    done = subprocess.run(command, cwd=MODULE, env=golang.environment(), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        shutil.rmtree(scratch)
        raise missing.Missing([f"a built Prometheus (go build ended with {done.returncode})"])
    target.mkdir(exist_ok=True)
    for program in PROGRAMS:
        (scratch / program).replace(target / program)
    shutil.rmtree(scratch, ignore_errors=True)
    progress.say("Prometheus is built")


def main() -> None:
    progress.say(f"Prometheus: {ensure()}")


if __name__ == "__main__":
    main()
