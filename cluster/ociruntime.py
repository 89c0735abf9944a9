"""What nvidia-container-runtime does, for simulated cards: called by containerd like runc, with runc's arguments.

A container whose environment names cards in NVIDIA_VISIBLE_DEVICES gets the driver's two libraries, the node's driver
state and the list of its cards as mounts; then runc runs as usual. `write` installs a script for one node; the script
calls back into this file only for `runc create` of a container that names cards, because Python starts slowly.
"""

import json
import sys
from pathlib import Path
from typing import Any

_VARIABLE = "NVIDIA_VISIBLE_DEVICES="
_NOTHING = {"", "void", "none"}
_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
_INSIDE = "/usr/lib/x86_64-linux-gnu"
_SCRIPT = """#!/bin/sh
bundle= create= previous=
for word; do
  [ "$previous" = --bundle ] && bundle=$word
  [ "$word" = create ] && create=1
  previous=$word
done
if [ -n "$create" ] && grep -q NVIDIA_VISIBLE_DEVICES= "$bundle/config.json"; then
  {python} -I {here} "$bundle" {driver} {state} || exit
fi
exec {runc} "$@"
"""


def write(target: Path, runc: str, driver: Path, state: Path) -> None:
    """Install the runtime of a node: `driver` holds the libraries, `state` the node's simulated cards."""
    script = _SCRIPT.format(python=sys.executable, here=__file__, driver=driver, state=state, runc=runc)
    target.write_text(script)
    target.chmod(0o755)


def visible(environment: list[str]) -> list[str]:
    """Cards that a container's environment names, in its order; the last assignment counts."""
    values = [line.removeprefix(_VARIABLE) for line in environment if line.startswith(_VARIABLE)]
    named = values[-1] if values else ""
    return [] if named in _NOTHING else named.split(",")


def injected(spec: dict[str, Any], driver: Path, state: Path, listing: Path) -> dict[str, Any]:
    """Return an OCI runtime spec with the driver's mounts; `listing` is the file of visible cards."""
    mounts = [_bind(driver / name, f"{_INSIDE}/{name}", "ro") for name in _LIBRARIES]
    mounts += [_bind(state, "/run/simgpu", "rw"), _bind(listing, "/run/simgpu-visible", "ro")]
    return spec | {"mounts": spec.get("mounts", []) + mounts}


def _bind(source: Path, destination: str, access: str) -> dict[str, Any]:
    return {"source": str(source), "destination": destination, "type": "bind", "options": ["rbind", "rprivate", access]}


def _known(state: Path) -> list[str]:
    words = (state / "cards").read_text().split()
    return [word.removeprefix("uuid=") for word in words if word.startswith("uuid=")]


def main(bundle: Path, driver: Path, state: Path) -> None:
    config = bundle / "config.json"
    spec = json.loads(config.read_text())
    cards = visible(spec["process"].get("env", []))
    if not cards:
        return
    listing = bundle / "simgpu-visible"
    listing.write_text("".join(f"{card}\n" for card in (_known(state) if cards == ["all"] else cards)))
    config.write_text(json.dumps(injected(spec, driver, state, listing)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
