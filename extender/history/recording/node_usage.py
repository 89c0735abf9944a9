"""What was measured of containers and cards, from the reports of their nodes."""

from extender.history.recording.events import CardMeasured, Used
from extender.state.fields.card_use import ReportedCardUse
from extender.state.fields.container_use import ContainerUse
from vgpu.domain.identifiers import NodeName


def used(node: NodeName, use: ContainerUse) -> Used:
    """Return the record of an entry of a GPUNode's `status.usage`."""
    return Used(
        pod_uid=use.pod_uid,
        node=node,
        container=use.container,
        gpu=use.gpu,
        from_ms=use.from_ms,
        until_ms=use.until_ms,
        gpu_ms=use.gpu_ms,
        peak_mib=use.peak_mib,
        levels=use.levels,
        used_mib=use.used_mib,
        wait_ms=use.wait_ms,
    )


def card_measured(node: NodeName, use: ReportedCardUse) -> CardMeasured:
    """Return the record of an entry of a GPUNode's `status.cardUse`."""
    return CardMeasured(
        node=node,
        gpu=use.gpu,
        from_ms=use.from_ms,
        until_ms=use.until_ms,
        busy_ms=use.busy_ms,
        used_mib=use.used_mib,
        celsius=use.celsius,
        watts=use.watts,
    )
