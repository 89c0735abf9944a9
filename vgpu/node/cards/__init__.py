"""The node's cards: which there are, what they are called, their health, and the arbiter that gives turns on them.

A module belongs here if it needs no container to be understood.
"""
