"""The verbs that kube-scheduler calls: which nodes can take a pod, which is best, what makes room, and the Binding.

A module belongs here if it decides something of one call. `bind` alone changes the cluster; the others answer only.
"""
