"""A cluster of one node with the NVIDIA cards of this machine, and how it travels to a machine without network.

`pack` runs here and writes what such a machine lacks, in parts; `unpack` runs there, on Python alone.
"""
