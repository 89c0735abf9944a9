"""Measured GPU time of containers, from the reports of their nodes."""

from extender.history.recording.events import Used
from extender.state.fields.container_use import ContainerUse
from vgpu.domain.identifiers import NodeName


def used(node: NodeName, use: ContainerUse) -> Used:
    """Return the record of an entry of a GPUNode's `status.usage`."""
    return Used(
        use.pod_uid, node, use.container, use.gpu, use.from_ms, use.until_ms, use.gpu_ms, use.peak_mib, use.levels
    )
