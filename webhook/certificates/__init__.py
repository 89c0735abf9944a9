"""The webhook's serving certificate: who signs it, how the API server comes to trust it, and when it is renewed."""
