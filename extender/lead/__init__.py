"""Which replica may change the cluster, and what becomes of the Bindings of a replica that ends.

A module belongs here if it is about the Lease of the extender or of its kube-scheduler, or about a Binding in flight.
"""
