"""A Go toolchain that can build the pinned Kubernetes.

Go 1.21 and later fetch the toolchain a go.mod asks for by themselves. Debian 12 has 1.19, which does not; but to it a
toolchain is an ordinary module, so it can download one from the module proxy, checked against the checksum database.
"""

import json
import os
import re
import subprocess
from pathlib import Path

from cluster import missing, progress

_SELF_UPDATING = (1, 21)


def find(module: Path) -> Path:
    """Path of a go command that can build the module in a folder; raises missing.Missing."""
    present = _present()
    if present is None:
        progress.say("no Go here: installing Debian's")
        missing.install(["golang-go"])
        present = _present()
    if present is None:
        raise missing.Missing(["Go (https://go.dev/dl)"])
    return present if _version(present) >= _SELF_UPDATING else _fetched(present, _wanted(module))


def environment() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOWORK": "off"}


def _present() -> Path | None:
    candidates = [missing.which("go"), "/usr/local/go/bin/go"]
    return next((Path(path) for path in candidates if path and Path(path).exists()), None)


def _version(go: Path) -> tuple[int, ...]:
    text = subprocess.run([go, "version"], capture_output=True, text=True, check=True, cwd="/").stdout
    found = re.search(r"go(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def _wanted(module: Path) -> str:
    found = re.search(r"^go (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise missing.Missing([f"a go line in {module}/go.mod"])
    return found[1]


def _fetched(go: Path, version: str) -> Path:
    """Download a newer Go as a module, by an older Go."""
    progress.say(f"Debian's Go is too old: fetching Go {version} through the module proxy")
    module = f"golang.org/toolchain@v0.0.1-go{version}.linux-amd64"
    done = subprocess.run(
        [go, "mod", "download", "-json", module], capture_output=True, text=True, check=False, cwd="/"
    )
    folder = Path(json.loads(done.stdout or "{}").get("Dir", "/nonexistent"))
    if not folder.exists():
        raise missing.Missing([f"Go {version} ({(done.stdout + done.stderr).strip()[-500:]})"])
    for tool in [*folder.glob("bin/*"), *folder.glob("pkg/tool/*/*")]:
        tool.chmod(0o755)  # a module's files come without the executable bit
    return folder / "bin" / "go"
