"""The process that serves the kubelet, and how the first process runs it.

A module belongs here if it is about that process, and not about what it serves.
"""
