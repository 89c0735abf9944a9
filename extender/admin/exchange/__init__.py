"""What the extender's process and the admin's process tell each other: snapshots one way, actions the other.

A module belongs here if it is about the connection of the two processes, or about what travels on it.
"""
