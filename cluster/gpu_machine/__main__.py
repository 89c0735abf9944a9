"""`python -m cluster.gpu_machine` (`make gpu-cluster`): a cluster with this machine's NVIDIA cards, until Ctrl-C."""

from cluster.__main__ import run
from cluster.gpu_machine.cluster import GpuMachineCluster

if __name__ == "__main__":
    run(GpuMachineCluster)
