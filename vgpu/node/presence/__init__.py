"""Whether the node serves pods: its Lease, and the files that the kubelet's probes look at.

A module belongs here if others conclude from it that the device plugin works.
"""
