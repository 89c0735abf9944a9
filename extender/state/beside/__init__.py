"""What stands beside a pod: the pods on each card, and the racks of its own job.

A module belongs here if it keeps an index of bound pods that placement prefers, or avoids, to stand beside.
"""
