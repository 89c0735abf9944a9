"""What every way for a node to serve shares needs, whichever protocol it speaks to the kubelet.

- What the node has: `inventory` and `health` (its cards), `watermarks`, `pods` (the pods bound here).
- What containers are given: `files` and `allocations` (the files of an allocation and its record), `arbiter`.
- Whether a container may start: `proof` (is the assignment trusted, do the devices match it?) and `guard` (does it
  fit on what is really on the cards?); `refusal` and `reports` say why not.
- What the cluster is told: `status` (the GPUNode), `presence` and `nodelease` (a heartbeat), `cluster` (the requests).
"""
