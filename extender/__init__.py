"""The scheduler extender: answers kube-scheduler's filter, prioritize and bind from the watched state of the cluster.

1. The `watches` feed pods, Nodes, GPUNodes and Leases into `cluster`, which derives what is taken of each card.
2. `filter` and `prioritize` answer from that state and change nothing. `explain` and `event_recorder` tell the owner of
   a pod that fits nowhere why.
3. `bind` places the pod again on the chosen node, reserves the cards, and posts the Binding with the assignment.
   `binding_outcome` finds out what became of a Binding without an answer. Only the leader binds (`leadership`).
"""
