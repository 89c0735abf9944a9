"""Idle cards come back: what nodes report of idle containers, and what the leading extender does about their pods.

A node measures for how long each container has used none of its cards, and reports it in its GPUNode
(`vgpu.node.usage.last_use`). `pod_use` adds the containers of a pod up, `vgpu.domain.asks.idle` decides, `watcher`
takes the reports and warns, and `actions` evicts the pod, or stops its owner, which `owners` finds. `sizes` remembers
how large an owner was.

A decision is made when a report arrives, because only a report says that the pod was idle until now: a node that is
silent has no effect. An extender that starts does not know how old the first reports are, and waits for the next. A
warning is a condition of the pod, so that the node puts it into a file in the pod's containers, and later extenders see
it; its grace time begins again with a new leader, and is never shorter.
"""
