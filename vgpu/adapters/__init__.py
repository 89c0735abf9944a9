"""The edge: the only modules that speak to Kubernetes and to NVML."""
