"""Cards and nodes: what they have, how they are connected, what is taken of them, and why one is refused.

A module belongs here if it needs no pod to be understood.
"""
