"""A cluster in memory: the API server over HTTP, a scheduling loop, nodes with simulated cards, pods that arrive.

The real extender and webhook run against it unchanged. `python -m vgpu.simulator` shows the whole; tests use
`vgpu.simulator.api`.
"""
