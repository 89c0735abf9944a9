"""Groups in space: the MPS daemon of each group on each card, its directories, and its members (ADR 174).

`python -m deviceplugin.space`, in the DaemonSet `vgpu-space`, runs the daemons. The device plugin adds members. What
works on the groups of a node belongs here.
"""
