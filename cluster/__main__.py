"""Runs a cluster with vgpushare until Ctrl-C: `python -m cluster` (`make cluster`)."""

import argparse
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol

from cluster import accounts, images, missing, progress
from cluster.cluster import GpuCluster
from cluster.programs.containerd import ContainerdMajor

_LOOK_EVERY_S: Final = 2.0
_EXPLANATION = """
  {work}/kubectl get nodes,gpunodes       kubectl, inside the cluster's network
  {work}/kubectl apply -f POD.yaml        images here: {base}
  {work}/kubectl-tenant get pods          as a user with rights on pods in one namespace only

  export KUBECONFIG={kubeconfig}
  nsenter -t {pid} -n                                a shell in which that KUBECONFIG works
  .venv/bin/python -m vgpu.cli get gpus   in that shell: the admin REST, through the API server

  {work}/logs/                            logs of all parts, and audit.log
  {work}/node1/                           the first node: its /run, /var/lib as lib, its cards in simgpu

Ctrl-C ends it.
"""


class WatchedProcess(Protocol):
    """A process that should run until the cluster ends."""

    name: str
    log: Path

    def has_ended(self) -> bool:
        """Whether the process was started and has ended by itself."""

    def tail(self) -> str:
        """The log's last lines."""


def main() -> None:
    """Run a cluster with simulated cards until Ctrl-C."""
    runtime = _arguments().containerd
    run(lambda: GpuCluster(runtime=runtime))


def run(make: Callable[[], GpuCluster]) -> None:
    """Run a cluster until Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with make() as cluster:
            _explain(cluster)
            report_ended(cluster.processes, progress.say, time.sleep)
    except missing.Missing as lacking:
        raise SystemExit(str(lacking)) from None
    except KeyboardInterrupt:
        progress.say("the cluster is removed")


def report_ended(
    processes: Sequence[WatchedProcess], say: Callable[[str], object], sleep: Callable[[float], object]
) -> NoReturn:
    """Say once of each process that it has ended by itself, with the end of its log, until Ctrl-C."""
    left = list(processes)
    while True:
        for process in [process for process in left if process.has_ended()]:
            left.remove(process)
            say(f"{process.name} has ended by itself. The end of {process.log}:\n{process.tail()}")
        sleep(_LOOK_EVERY_S)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cluster", description="A real cluster with simulated cards.")
    parser.add_argument(
        "--containerd",
        type=ContainerdMajor,
        choices=list(ContainerdMajor),
        default=ContainerdMajor.DEBIAN,
        help="major version of containerd: Debian's 1.6, or 2.x, which is built (default: %(default)s)",
    )
    return parser.parse_args()


def _explain(cluster: GpuCluster) -> None:
    kubeconfig = accounts.path(cluster.work, accounts.ADMIN.name)
    text = _EXPLANATION.format(work=cluster.work, base=images.BASE, kubeconfig=kubeconfig, pid=cluster.within.pid)
    os.write(1, text.encode())


if __name__ == "__main__":
    main()
