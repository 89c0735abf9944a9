"""The admission webhook: refuses invalid requests, translates foreign names, and adds what the other parts need.

Every answer follows from the review, the settings and the cluster's cards. `mutate` adds, `validate` refuses, both use
`vgpu.domain.asks.translate`; `certificates` is about TLS.
"""
