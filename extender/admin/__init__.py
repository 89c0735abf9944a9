"""The admin REST: what an administrator and a tenant ask about cards, pods and waiting pods, on a listener of its own.

It is a process of its own (`python -m extender.admin`), which the extender starts (`exchange.process`), so that lists
of 160,000 pods, bodies of 100 MiB and a thousand event streams cost the verbs nothing. The process asks for what has
changed since its last snapshot (`exchange.cluster_client`). The verbs' event loop looks at what has changed and at
nothing else (`exchange.snapshot_changes`), and sends it in slices of 0.5 ms (`exchange.cluster_server`). The process
makes an immutable `ClusterSnapshot` of it (`exchange.mirror`).
Explain and simulate, which place pods on every node, run in a further process (`worker`), which is killed when its
time is over.

A request takes these steps:

1. `app` bounds its size, and `security.access` finds the caller: loopback, a static token, or a TokenReview
   (`security.token_reviews`).
2. `security.rate_limits` bounds the caller's requests.
3. A router of `routes` asks `security.visibility` which namespaces and nodes the caller may see, and makes rows of the
   snapshot (`answers.rows`).
4. `answers.paging` filters, sorts and pages rows; `answers.json_response` adds the ETag; `problems` writes every
   error as RFC 9457 has it.

Admin actions (`routes.card_settings`) are written to the GPUNode's spec, as kubectl would, and reported to
`security.audit`.
"""
