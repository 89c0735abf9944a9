"""The admin REST: what an administrator and a tenant ask about cards, pods and waiting pods, on a listener of its own.

The listener runs in a thread with an event loop of its own (`server`). Nothing in it reads the cluster's state
directly: the verbs' event loop hands over an immutable `Snapshot`, made in slices of 2 ms (`snapshots`). So a list of
160,000 pods, a body of 100 MiB or a thousand event streams cost the verbs at most the interpreter's switch interval.
Explain and simulate, which place pods on every node, run in a process of their own (`placement_process`, `worker`),
which is killed when its time is over.

A request takes these steps:

1. `app` bounds its size, and `access` finds the caller: loopback, a static token, or a TokenReview (`reviews`).
2. `rate_limits` bounds the caller's requests.
3. A router (`inventory_routes`, `pod_routes`, `simulate_routes`, `card_routes`, `event_routes`, `summary_routes`) asks
   `visibility` which namespaces and nodes the caller may see, and makes rows of the snapshot (`rows`).
4. `listing` filters, sorts and pages rows; `etag` adds the ETag; `problems` writes every error as RFC 9457 has it.

Admin actions (`card_settings`) are written to the GPUNode's spec, as kubectl would, and reported to `audit`.
"""
