"""kube-scheduler's extender protocol: what comes as bytes, and what goes back as bytes.

Nothing here knows the cluster: a module belongs here if it reads or writes a call, or says which client may make one.
"""
