"""The webhook's serving certificate: which CA signs it, how the API server trusts the CA, when both are renewed.

`signing` creates CAs and certificates, `ca_rotation` decides, `ca_objects` reads and writes the cluster's objects, and
`renewal` repeats the steps.
"""
