"""`python -m cluster.gpu_machine` (`make gpu-cluster`): a cluster with this machine's NVIDIA cards, until Ctrl-C."""

import argparse

from cluster.__main__ import run
from cluster.gpu_machine.cluster import GpuMachineCluster

if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m cluster.gpu_machine",
        description="A real cluster with one node, which has this machine's NVIDIA cards, until Ctrl-C; as root.",
    ).parse_args()
    run(GpuMachineCluster)
