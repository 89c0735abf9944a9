"""The command line program as an account of the cluster runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cluster import accounts
from cluster.bare import BareCluster
from cluster.programs import binaries

_LONGEST_S: Final = 60.0


def vgpu(cluster: BareCluster, account: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run the program in the cluster's network with an account's kubeconfig; return its code and both outputs."""
    done = _run(cluster, account, arguments, environment, subprocess.STDOUT)
    return done.returncode, done.stdout


def read(cluster: BareCluster, account: str, *arguments: str) -> Any:
    """Return what the program answers with `-o json`; warnings on stderr are no part of it.

    Raises:
        AssertionError: the program failed.
    """
    done = _run(cluster, account, [*arguments, "-o", "json"], {}, subprocess.PIPE)
    if done.returncode:
        raise AssertionError(f"vgpu {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def _run(
    cluster: BareCluster, account: str, arguments: Sequence[str], environment: Mapping[str, str], stderr: int
) -> subprocess.CompletedProcess[str]:
    settings = {"KUBECONFIG": str(accounts.path(cluster.work, account)), "PATH": os.environ["PATH"], **environment}
    settings["HOME"] = str(cluster.work)  # for the cache of kubectl, which some commands start
    command = [sys.executable, "-m", "vgpu.cli", *arguments]
    with cluster.within.network():
        return subprocess.run(
            command, env=settings, cwd=binaries.REPOSITORY, stdout=subprocess.PIPE, stderr=stderr, text=True,
            timeout=_LONGEST_S, check=False,
        )  # fmt: skip
