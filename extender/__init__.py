"""The scheduler extender: answers filter, prioritize, preempt and bind from the watched state of the cluster.

1. `watch` feeds pods, Nodes, GPUNodes and Leases into `state`, which derives what is taken of each card; `index` keeps
   the nodes as arrays, so that a question about 5,000 nodes is answered at once.
2. `verbs` answer kube-scheduler, whose bytes `protocol` reads and writes. `filter` and `prioritize` change nothing.
   `preempt` decides which pods of lower priority leave. `bind` places the pod again on the chosen node, reserves the
   cards, and posts the Binding with the assignment. `gangs` plans pods that start together.
3. `explain` tells the owner of a pod that fits nowhere why. `idle` acts on pods that do not use their cards.
4. `lead` says whether this replica may change the cluster, and finds out what became of a Binding without an answer.
   `effects` writes Events, evictions and conditions.
5. `history` records what happened, in SQL; `admin` answers administrators over REST, and `web` is their page.

`assembly` connects the parts, `app` serves the verbs, and `__main__` starts them.
"""
