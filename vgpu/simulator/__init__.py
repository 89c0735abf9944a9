"""A cluster in memory: an API server over HTTP, a scheduling loop, nodes with simulated cards, and a workload of pods.

The real extender and webhook run against the simulator unchanged. `python -m vgpu.simulator` runs everything; tests use
`vgpu.simulator.api`.
"""
