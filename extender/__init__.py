"""The scheduler extender: answers filter, prioritize, preempt and bind from the watched state of the cluster.

1. The `watches` feed pods, Nodes, GPUNodes and Leases into `cluster`, which derives what is taken of each card.
2. `filter` and `prioritize` answer from that state and change nothing. `explain` and `event_recorder` tell the owner of
   a pod that fits nowhere why.
3. `preempt` decides which pods of lower priority leave, where that makes room for a pod. `room` is what it decides
   from, `evictor` writes to the cluster, `nominations` and `budgets` are what it must respect.
4. `bind` places the pod again on the chosen node, reserves the cards, and posts the Binding with the assignment.
   `binding_outcome` finds out what became of a Binding without an answer. Only the leader binds (`leadership`).
"""
