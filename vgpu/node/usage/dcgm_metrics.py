"""Metrics under the names and labels of NVIDIA's dcgm-exporter, so that its dashboards work. Pure.

dcgm-exporter gives each pod of a shared card the card's figure. Here utilization and memory are the container's own
where containers hold the card; a card that no container holds has its own figure, with empty labels.
https://github.com/NVIDIA/dcgm-exporter
"""

from collections.abc import Callable
from typing import Final

from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind
from vgpu.adapters.nvml.records import Reading
from vgpu.domain.quantity import MIB
from vgpu.node.usage.metrics import CardReading, ContainerState, NodeReading

_LABELS: Final = ("gpu", "UUID", "device", "modelName", "Hostname", "container", "namespace", "pod")

UTILIZATION: Final = Metric("DCGM_FI_DEV_GPU_UTIL", MetricKind.GAUGE, "GPU utilization (in %)", _LABELS)
USED: Final = Metric("DCGM_FI_DEV_FB_USED", MetricKind.GAUGE, "Framebuffer memory used (in MiB)", _LABELS)
FREE: Final = Metric("DCGM_FI_DEV_FB_FREE", MetricKind.GAUGE, "Framebuffer memory free (in MiB)", _LABELS)
_OF_CARD: Final[tuple[tuple[Metric, Callable[[Reading], float | None]], ...]] = (
    (
        Metric("DCGM_FI_DEV_GPU_TEMP", MetricKind.GAUGE, "GPU temperature (in C)", _LABELS),
        lambda r: r.temperature_celsius,
    ),
    (Metric("DCGM_FI_DEV_POWER_USAGE", MetricKind.GAUGE, "Power draw (in W)", _LABELS), lambda r: r.power_watts),
    (
        Metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", MetricKind.GAUGE, "Energy since boot (in mJ)", _LABELS),
        lambda r: None if r.energy_joules is None else r.energy_joules * 1000,
    ),
    (
        Metric("DCGM_FI_DEV_MEM_COPY_UTIL", MetricKind.GAUGE, "Memory utilization (in %)", _LABELS),
        lambda r: None if r.memory_utilization is None else r.memory_utilization * 100,
    ),
)

CATALOGUE: Final = (UTILIZATION, USED, FREE, *(metric for metric, _ in _OF_CARD))


def families(state: NodeReading) -> list[MetricFamily]:
    """Return the values of all metrics."""
    parts = [(card, part) for card in state.cards for part in _parts(card, state)]
    utilization = [(_labels(state, card, part), _utilization(card, part)) for card, part in parts]
    used = [(_labels(state, card, part), _used(card, part)) for card, part in parts]
    free = [(_labels(state, card, part), _free(card, part)) for card, part in parts]
    return [
        MetricFamily(UTILIZATION, _known(utilization)),
        MetricFamily(USED, _known(used)),
        MetricFamily(FREE, _known(free)),
        *(
            MetricFamily(
                metric,
                _known([(_labels(state, card, None), value(card.reading)) for card in state.cards if card.reading]),
            )
            for metric, value in _OF_CARD
        ),
    ]


def _parts(card: CardReading, state: NodeReading) -> list[ContainerState] | list[None]:
    return [container for container in state.containers if container.gpu == card.gpu.card.uuid] or [None]


def _utilization(card: CardReading, part: ContainerState | None) -> float | None:
    if part is None:
        return card.reading.utilization * 100 if card.reading and card.reading.utilization is not None else None
    return part.use.second.permille / 10 if part.use else 0.0


def _used(card: CardReading, part: ContainerState | None) -> float | None:
    if part is None:
        return card.reading.memory_used_bytes // MIB if card.reading and card.reading.memory_used_bytes else None
    return (part.use.used_bytes if part.use else 0) // MIB


def _free(card: CardReading, part: ContainerState | None) -> float | None:
    if part is not None and part.limit_bytes is not None:
        return max(0, part.limit_bytes // MIB - (_used(card, part) or 0))
    free = card.reading.memory_free_bytes if card.reading else None
    return None if free is None else free // MIB


def _labels(state: NodeReading, card: CardReading, part: ContainerState | None) -> tuple[str, ...]:
    gpu = card.gpu.card
    holder = (part.holder.container, part.holder.namespace, part.holder.name) if part else ("", "", "")
    return str(gpu.index), gpu.uuid, f"nvidia{card.gpu.minor}", gpu.model, state.node, *holder


def _known(samples: list[tuple[tuple[str, ...], float | None]]) -> list[tuple[tuple[str, ...], float]]:
    return [(labels, float(value)) for labels, value in samples if value is not None]
