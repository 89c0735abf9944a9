"""The adapters of external systems: the Kubernetes API server, NVML, and the process that a program runs as."""
