"""What every way for a node to serve shares needs, whichever protocol it speaks to the kubelet.

- What the node has: `inventory` and `health` (its cards), `watermarks`, `pods` (the pods bound here).
- What containers are given: `state_files` and `allocations` (the files of an allocation and its record), `libraries`,
  `arbiter`; below them `durable` (files that a power loss leaves whole) and `labels` (SELinux).
- Whether a container may start: `proof` (is the assignment trusted, do the devices match it?) and `guard` (is there
  room beside what is really on the cards?). `limits_writer` then writes the limits; `refusal` and `refusal_reporter`
  say why a container may not start.
- What the cluster is told: `gpunode` (the GPUNode's status), `heartbeat` and `node_lease`, `node_api` (the requests).
"""
