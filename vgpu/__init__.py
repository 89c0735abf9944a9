"""The domain: what a share of a GPU is, what pods ask for, and where they are placed.

The modules of this package and `vgpu.placement` import the standard library only: no clock, no environment, no input or
output. `adapters` speaks to Kubernetes and NVML, `node` is what every node integration needs, `cli` and `simulator` are
programs.
"""

__version__ = "0.1.0"
