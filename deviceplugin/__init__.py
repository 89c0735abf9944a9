"""The node's part: it tells the kubelet which devices the cards offer, and gives each container its own share, or none.

The kubelet names device IDs and never says for which pod. The story of one container:

1. GetPreferredAllocation (`preferred_allocation`): pod-resources already lists the pod that is being admitted.
   `candidates` finds it, and the answer is slices on the cards that the scheduler assigned.
2. Allocate (`allocate`): the directory of the allocation is made and mounted. Whom it is for is recorded, not trusted.
3. PreStartContainer (`prestart`): pod-resources now names the holder for certain (`holder_lookup`).
   `vgpu.node.containers.proof` compares the IDs with the assignment, `vgpu.node.containers.guard` adds up what is
   really on the card, and only then the limits are written.

An error in the first two makes the pod Failed for good, so on doubt they answer, and the third refuses.
"""
