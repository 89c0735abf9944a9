"""What all parts of vgpushare share: the domain, placement, adapters, what nodes need, and the commands.

`domain`, `placement` and `pacing` import the standard library only: no clock, no environment, no input or output.
`adapters` speaks to Kubernetes and NVML, `node` is what every node integration needs, `workloads` judges and estimates
programs, `cli` and `simulator` are programs.
"""

__version__ = "0.1.0"
