"""The scheduler extender: answers kube-scheduler's filter, prioritize and bind from a picture of the cluster."""
