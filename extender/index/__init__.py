"""The index: every node and card as numbers in arrays, so that a request is judged on all nodes in one pass.

`NodeIndex` has a row for each node whose cards a GPUNode reports. `NodeRows` writes a row where the node's state has
changed, and nothing else writes; an update costs one node. `NodeJudge` applies the rule of `vgpu.placement.fit` to all
rows, keeps the outcome of each request, and judges only changed rows again. `ranking` orders nodes by a policy's cost;
policies that are expensive to compute keep what they know of each row in a `row_cache`. `supply` adds up rows, for
prices. `choice` does what filter and prioritize do together, for simulations.

The index is derived: `choose.place` on a `NodeState` remains the rule, and the tests compare every outcome with it.
Requests that several containers choose cards for are only screened here: a node that survives is placed exactly.

This package alone imports numpy. It knows no pods and no Kubernetes objects.
"""
