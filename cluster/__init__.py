"""A real Kubernetes cluster on this machine, for `make cluster`, tests/e2e and benchmarks; never installed."""
