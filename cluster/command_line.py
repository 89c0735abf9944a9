"""The command line program as an account of the cluster runs it."""

import os
import subprocess
import sys
from typing import Final

from cluster import accounts
from cluster.bare import BareCluster
from cluster.programs import binaries

_LONGEST_S: Final = 60.0


def vgpu(cluster: BareCluster, account: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the program in the cluster's network with an account's kubeconfig; return its code and both outputs."""
    settings = {"KUBECONFIG": str(accounts.path(cluster.work, account)), "PATH": os.environ["PATH"], **environment}
    settings["HOME"] = str(cluster.work)  # for the cache of kubectl, which some commands start
    command = [sys.executable, "-m", "vgpu.cli", *arguments]
    with cluster.within.network():
        done = subprocess.run(
            command, env=settings, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=_LONGEST_S, check=False,
        )  # fmt: skip
    return done.returncode, done.stdout
