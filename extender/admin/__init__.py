"""The admin REST: what an administrator and a tenant ask about cards, pods and waiting pods, on a listener of its own.

It is a process of its own (`python -m extender.admin`), which the extender starts (`process`), so that lists of
160,000 pods, bodies of 100 MiB and a thousand event streams cost the verbs nothing. The verbs' event loop makes an
immutable `Snapshot` in slices of 0.5 ms (`snapshots`), and sends what has changed since the last one (`answering`,
`snapshot_pieces`) to the process, which asks for it (`link`). Explain and simulate, which place pods on every node,
run in a further process (`placement_process`, `worker`), which is killed when its time is over.

A request takes these steps:

1. `app` bounds its size, and `access` finds the caller: loopback, a static token, or a TokenReview (`reviews`).
2. `rate_limits` bounds the caller's requests.
3. A router (`inventory_routes`, `pod_routes`, `simulate_routes`, `card_routes`, `event_routes`, `summary_routes`) asks
   `visibility` which namespaces and nodes the caller may see, and makes rows of the snapshot (`rows`).
4. `listing` filters, sorts and pages rows; `etag` adds the ETag; `problems` writes every error as RFC 9457 has it.

Admin actions (`card_settings`) are written to the GPUNode's spec, as kubectl would, and reported to `audit`.
"""
