"""The node's NVIDIA driver as files of containers, for nodes without NVIDIA's container toolkit.

`discovery` finds the files on the node, `files` decides what a container gets, `cdi` writes it as a CDI specification.
"""
