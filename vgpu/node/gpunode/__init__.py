"""What the node tells the cluster: the status of its GPUNode object, and what an administrator wants in its spec.

A module belongs here if it makes or reads fields of the GPUNode.
"""
