"""What every way for a node to serve shares needs, whichever protocol it speaks to the kubelet.

- `cards`: which cards the node has, and their health. `presence`: whether the node serves pods.
- `containers`: what containers are given (`state_files`, `allocations`, `libraries`), and whether one may start:
  `proof` (is the assignment trusted, do the devices match it?) and `guard` (is there room beside what is really on the
  cards?).
- `gpunode`: what the cluster is told of the node, and what an administrator wants of its cards.
- `processes`: which processes use cards without a share, or without its limits.
- `usage`: what containers use of their cards.
"""
