"""What was measured of containers and cards, from the reports of their nodes."""

from extender.history.recording.events import CardMeasured, Used
from extender.state.fields.card_use import ReportedCardUse
from extender.state.fields.container_use import ContainerUse
from vgpu.domain.identifiers import NodeName


def used(node: NodeName, use: ContainerUse) -> Used:
    """Return the record of an entry of a GPUNode's `status.usage`."""
    return Used(
        use.pod_uid, node, use.container, use.gpu, use.from_ms, use.until_ms, use.gpu_ms, use.peak_mib, use.levels,
        use.used_mib, use.wait_ms,
    )  # fmt: skip


def card_measured(node: NodeName, use: ReportedCardUse) -> CardMeasured:
    """Return the record of an entry of a GPUNode's `status.cardUse`."""
    return CardMeasured(node, use.gpu, use.from_ms, use.until_ms, use.busy_ms, use.used_mib, use.celsius, use.watts)
