"""What this machine lacks for a real cluster: packages, folders and rights by name."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cluster import one_process

PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "etcd": "etcd-server",
    "runc": "runc",
    "ip": "iproute2",
    "busybox": "busybox-static",
}
HIDDEN = (Path("/run"), Path("/var/lib"), Path("/var/log"))  # every node has its own

_INSTALLING = Path("/run/vgpushare-packages.lock")
_OTHERS_S = 300
_SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


class Missing(Exception):
    """The machine cannot run the cluster; `things` are the reasons."""

    def __init__(self, things: list[str]) -> None:
        super().__init__("cannot run a cluster here: " + "; ".join(things))
        self.things = things


def which(program: str) -> str | None:
    """Find a program on PATH or in the folders of root's programs, which a user's PATH may lack."""
    return shutil.which(program, path=_SEARCH)


def packages() -> list[str]:
    """Names of the Debian packages whose programs are not installed."""
    return sorted({package for program, package in PACKAGES.items() if which(program) is None})


def install(names: list[str]) -> None:
    """Install Debian packages, after another process that does; raises Missing with apt's last output."""
    with one_process.at_a_time(_INSTALLING):
        _install(names)


def _install(names: list[str]) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", f"DPkg::Lock::Timeout={_OTHERS_S}"]  # such as for unattended upgrades
    command = ["apt-get", *wait, "install", "-y", "-qq", "--no-install-recommends", *names]
    for step in (["apt-get", "update", "-qq"], command):
        done = subprocess.run(
            step, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            raise Missing([f"packages {' '.join(names)} (apt-get: {done.stderr.strip()[-500:]})"])


def reasons(needed: Sequence[Path]) -> list[str]:
    """Why no cluster can run here, however many packages are installed; empty when one can.

    `needed` are the folders that processes on a node must see.
    """
    hidden = [str(folder) for folder in needed if any(map(folder.is_relative_to, HIDDEN))]
    checks = {
        "Linux on x86_64": platform.system() == "Linux" and platform.machine() == "x86_64",
        "root (namespaces, mounts and cgroups are made)": os.geteuid() == 0,
        "apt-get, or " + " ".join(packages()): not packages() or which("apt-get") is not None,
        f"{', '.join(hidden)} outside {', '.join(map(str, HIDDEN))}": not hidden,
    }
    found = [need for need, met in checks.items() if not met]
    return found or _namespaces()


def _namespaces() -> list[str]:
    probe = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return [f"private namespaces ({done.stderr.strip()})"] if done.returncode else []
