"""An in-memory Kubernetes API server, which behaves as the real one where its clients depend on it.

Implemented: optimistic concurrency, uid preconditions, no-op writes, status subresources, lists in consistent pages,
watches with bookmarks and 410, Bindings, graceful deletion, finalizers, admission webhooks, Status errors, discovery.

Simplified: there is no authentication or authorization; namespaces need not exist; objects are validated only as far as
our parts depend on it; there is no garbage collection by owner; the last 1,000 Events stay, and not those of an hour;
`matchConditions` and ValidatingAdmissionPolicies are not evaluated; an apply patch is a strategic merge patch.
"""
