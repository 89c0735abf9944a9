"""The node's part: it tells the kubelet what the cards hold, and hands each container its own share, or nothing.

The kubelet speaks of device IDs and never says for which pod. The story of one container:

1. GetPreferredAllocation (`admission`): pod-resources already lists the pod that is being admitted; `candidates` finds
   it, and the answer is slices on the cards that the scheduler assigned.
2. Allocate (`admission`): a directory of the allocation is made and mounted; who it is for is remembered, not trusted.
3. PreStartContainer (`prestart`): pod-resources now names the holder for certain. `proof` holds the IDs against the
   assignment, `guard` adds up what is really on the card, and only then the limits are written.

An error in the first two makes the pod Failed for good, so on doubt they answer, and the third refuses.
"""
