"""Files and texts that outlive a process, byte by byte: the limits file, the region, and paths in containers.

A module belongs here if a program in another language, or another version of ours, reads the same bytes.
"""
