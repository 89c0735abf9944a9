"""Placement: which node and which cards a pod gets. Pure functions of a snapshot; equal questions get equal answers.

A scheduling decision for one pod takes these steps:

1. `choose.place` looks at one node. It takes the pod's containers in the kubelet's order and chooses cards for each;
   init containers use the cards of the pod's anchor container. The outcome is an assignment, or a refusal with a reason
   for the node and one for each card. Where that order leaves no room, `packing` searches for any cards that do.
2. `fit` answers for one card: does it accept the container, and is enough memory and time left on it?
3. `rank` orders the nodes that can take the pod, and scores them for kube-scheduler.
4. `policies` is the table that both use: each packing policy says which card and which node comes first. A cost of a
   node is calculated from its `room`, for a `question`: a pod, and the `demand`, which are the pods to come.
"""
