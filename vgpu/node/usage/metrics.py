"""The metrics of one node: what its cards do, and what each container uses of them. Pure.

A container writes its own region, so its figures are as good as the container; `vgpu_container_memory_nvml_bytes` and
the findings tell where they are wrong. There are 22 series for each container and card, 12 to 29 for a card, and up to
11 for a node (docs/metrics.md lists them); 8 cards with 32 containers each have 5,700 series.

A container with long kernels has two series more, three while one of them does not end. A member of a group in space
has two series more, and each group one for each card. A container of a synthetic
load has one series more, `vgpu_container_synthetic`, and others have none of it. A label in every series instead would
begin all of them anew where the pod's label changes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vgpu.adapters.metrics import Metric, MetricFamily, MetricKind
from vgpu.adapters.nvml.records import Gpu, Reading
from vgpu.domain.cards.measured_use import WAIT_CAUSES
from vgpu.domain.formats import region
from vgpu.domain.formats.region import CardUse, ExportedCounter
from vgpu.domain.identifiers import CardUuid, NodeName
from vgpu.node.containers.allocations import Holder

_CARD_LABELS: Final = ("node", "gpu_uuid", "gpu_index", "model")
_CONTAINER_LABELS: Final = (*_CARD_LABELS, "namespace", "pod", "container")
_NS: Final = 1e-9


@dataclass(frozen=True, slots=True)
class CardReading:
    """A card now.

    Attributes:
        gpu: the card.
        fault: why the card is unhealthy; empty where it is not.
        reading: what NVML says; None where the card does not answer.
        held_slices: slices that containers hold; all of a card that is held whole.
        held_whole: whether a container holds the whole card.
        busy_s: seconds in which a kernel ran, since the plugin started, by NVML's samples.
        others_s: seconds of processes that no region accounts for, since the plugin started, by NVML's samples.
        xids: number of XID errors since the plugin started, by code; rare codes are counted together.
    """

    gpu: Gpu
    fault: str = ""
    reading: Reading | None = None
    held_slices: int = 0
    held_whole: bool = False
    busy_s: float = 0.0
    others_s: float = 0.0
    xids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container's part of one card now.

    Attributes:
        holder: the container.
        gpu: UUID of the card.
        limit_bytes: memory limit; None where there is none.
        cores: percent of the card's time that is asked for; None for a whole card.
        use: the region's account; None before the first use.
        processes: number of processes that NVML lists.
        nvml_bytes: memory that NVML counts for them.
        gpu_s: seconds of the card's time used, since the plugin or the container started; see `gpu_time`.
        sampled_s: the same by NVML's samples only.
        idle_ms: for how long the container has not used the card; None where that is unknown.
        is_synthetic: whether its kernels are a load for tests, and no use.
        endless_kernel_s: for how long a kernel of it has run that does not end; None where there is none.
        outside_group: how many of its processes are no clients of its group's MPS server; None outside of groups.
        space_group: the name of its group in space; empty outside of groups.
    """

    holder: Holder
    gpu: CardUuid
    limit_bytes: int | None = None
    cores: int | None = None
    use: CardUse | None = None
    processes: int = 0
    nvml_bytes: int = 0
    gpu_s: float = 0.0
    sampled_s: float = 0.0
    idle_ms: int | None = None
    is_synthetic: bool = False
    endless_kernel_s: float | None = None
    outside_group: int | None = None
    space_group: str = ""


@dataclass(frozen=True, slots=True)
class NodeReading:
    """A node now.

    Attributes:
        node: its name.
        version: of the device plugin.
        cards: by index.
        containers: each container once for each of its cards.
        findings: number of findings by reason.
        arbiter_runs: whether the arbiter runs; None where the node has none.
        is_registered: whether the kubelet takes the node's devices.
        unread_regions: number of regions that cannot be read.
        refusals: number of containers that were refused at their start, and whose pods exist.
        group_faults: how often the MPS server of each group in space that has members faulted, by card and group.
    """

    node: NodeName
    version: str = ""
    cards: tuple[CardReading, ...] = ()
    containers: tuple[ContainerState, ...] = ()
    findings: Mapping[str, int] = field(default_factory=dict)
    arbiter_runs: bool | None = None
    is_registered: bool = False
    unread_regions: int = 0
    refusals: int = 0
    group_faults: Mapping[tuple[CardUuid, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric of a card or a container, and how to read its value; None where there is no value."""

    metric: Metric
    value: Callable[[Any], float | None]


def _container(name: str, kind: MetricKind, text: str, value: Callable[[ContainerState], float | None]) -> MetricRow:
    return MetricRow(Metric(f"vgpu_container_{name}", kind, text, _CONTAINER_LABELS), value)


def _used(name: str, kind: MetricKind, text: str, value: Callable[[CardUse], float | None]) -> MetricRow:
    """Make a row of what the region says."""
    return _container(name, kind, text, lambda container: None if container.use is None else value(container.use))


def _counted(name: str, counter: ExportedCounter) -> MetricRow:
    """Make a row of a counter of the region."""
    return _used(counter.metric, _C, counter.help, lambda use: getattr(use.activity, name) * counter.unit)


def _card(name: str, kind: MetricKind, text: str, value: Callable[[CardReading], float | None]) -> MetricRow:
    return MetricRow(Metric(f"vgpu_card_{name}", kind, text, _CARD_LABELS), value)


def _read(name: str, kind: MetricKind, text: str, value: Callable[[Reading], float | None]) -> MetricRow:
    """Make a row of what NVML says."""
    return _card(name, kind, text, lambda card: None if card.reading is None else value(card.reading))


_G, _C = MetricKind.GAUGE, MetricKind.COUNTER

CONTAINER_ROWS: Final = (
    _container("memory_limit_bytes", _G, "Memory limit on the card", lambda c: c.limit_bytes),
    _used("memory_used_bytes", _G, "Memory charged to the container, by its region", lambda u: u.used_bytes),
    _container(
        "memory_nvml_bytes", _G, "Memory of the container's processes, as NVML counts it", lambda c: c.nvml_bytes
    ),
    _used(
        "memory_peak_bytes", _G, "Most memory that was ever charged since the container started", lambda u: u.peak_bytes
    ),
    _used(
        "memory_spilled_bytes_total",
        _C,
        "Memory served from the host because the card was full",
        lambda u: u.spilled_bytes,
    ),
    _container(
        "cores_ratio",
        _G,
        "Share of the card's time that is asked for, 0 to 1",
        lambda c: None if c.cores is None else c.cores / 100,
    ),
    _container(
        "gpu_seconds_total",
        _C,
        "GPU time used: in turns, by events on the card; without turns, by NVML's samples; "
        "less what processes without the limiter used meanwhile",
        lambda c: c.gpu_s,
    ),
    _used("turn_seconds_total", _C, "GPU time used in turns, by events on the card", lambda u: u.gpu_ns * _NS),
    _container(
        "sampled_seconds_total",
        _C,
        "GPU time used, by NVML's samples of the container's processes",
        lambda c: c.sampled_s,
    ),
    _used("throttled_seconds_total", _C, "Time that launches waited", lambda u: u.throttled_ns * _NS),
    _used("delayed_launches_total", _C, "Launches that waited", lambda u: u.delayed_launches),
    _used(
        "longest_wait_seconds",
        _G,
        "Longest wait of a launch since the container started",
        lambda u: u.longest_wait_us / 1e6,
    ),
    _used("memory_refusals_total", _C, "Allocations that the limiter refused", lambda u: u.refusals),
    *(_counted(name, counter) for name, counter in region.EXPORTED.items()),
    _used(
        "long_kernels_total",
        _C,
        "Kernels and graphs that took 50 ms or more; no value where there was none",
        lambda u: u.activity.long_kernels or None,
    ),
    _used(
        "long_kernel_seconds_total",
        _C,
        "Time of kernels and graphs that took 50 ms or more; no value where there was none",
        lambda u: u.activity.long_kernel_ns * _NS or None,
    ),
    _container("processes", _G, "Processes that NVML lists on the card", lambda c: c.processes),
    _container(
        "idle_seconds",
        _G,
        "Time since the container last used the card; no value where that is unknown",
        lambda c: None if c.idle_ms is None else c.idle_ms / 1000,
    ),
    _container(
        "endless_kernel_seconds",
        _G,
        "Time for which a kernel of the container has run that does not end, beside other containers; no value where "
        "there is none",
        lambda c: c.endless_kernel_s,
    ),
    _container(
        "processes_outside_group",
        _G,
        "Processes of a member of a group in space that are no clients of the group's MPS server; of members only",
        lambda c: c.outside_group,
    ),
    _container(
        "synthetic",
        _G,
        "1 for a container of a pod with the label vgpu.io/synthetic: its GPU time is a load for tests, and no use; no "
        "value for others",
        lambda c: 1 if c.is_synthetic else None,
    ),
)

WAITS: Final = Metric(
    "vgpu_container_wait_seconds_total",
    _C,
    "Time that launches waited, by cause: turn (another container has the card), share (its own share is used up), "
    "drain (its own work), queued (on the card, while the host goes on)",
    (*_CONTAINER_LABELS, "cause"),
)

SPACE_GROUP: Final = Metric(
    "vgpu_container_space_group",
    _G,
    "1 for a member of a group in space, with the group's name: their sum on a card is its number of members",
    (*_CONTAINER_LABELS, "space_group"),
)
GROUP_FAULTS: Final = Metric(
    "vgpu_card_group_faults_total",
    _C,
    "Faults of the MPS server of a group in space since the plugin started, each of which ended all of its programs",
    (*_CARD_LABELS, "space_group"),
)

CARD_ROWS: Final = (
    _card("healthy", _G, "1 while the card is given to new containers", lambda c: not c.fault),
    _card(
        "held_slices",
        _G,
        "Memory slices that containers hold; all slices of a card that is held whole",
        lambda c: c.held_slices,
    ),
    _card("held_whole", _G, "1 while a container holds the whole card", lambda c: c.held_whole),
    _read(
        "memory_total_bytes",
        _G,
        "Memory of the card, with what the driver reserves, by NVML",
        lambda r: r.memory_total_bytes,
    ),
    _read(
        "memory_used_bytes",
        _G,
        "Memory in use on the card, without what the driver reserves, by NVML",
        lambda r: r.memory_used_bytes,
    ),
    _read("temperature_celsius", _G, "Temperature of the GPU", lambda r: r.temperature_celsius),
    _read("power_watts", _G, "Power that the card draws", lambda r: r.power_watts),
    _read("energy_joules_total", _C, "Energy used since the driver was loaded", lambda r: r.energy_joules),
    _read(
        "utilization_ratio",
        _G,
        "Share of NVML's last sample period in which a kernel ran, 0 to 1",
        lambda r: r.utilization,
    ),
    _card("busy_seconds_total", _C, "Time in which a kernel ran, by NVML's samples", lambda c: c.busy_s),
    _card(
        "others_seconds_total",
        _C,
        "GPU time of processes that no region accounts for, by NVML's samples",
        lambda c: c.others_s,
    ),
)

FAULTS: Final = Metric("vgpu_card_fault", _G, "1 for the reason of an unhealthy card", (*_CARD_LABELS, "reason"))
XIDS: Final = Metric(
    "vgpu_card_xid_errors_total", _C, "XID errors of the card since the plugin started", (*_CARD_LABELS, "xid")
)
INFO: Final = Metric("vgpu_node_info", _G, "1, with the version of the device plugin", ("node", "version"))
ARBITER: Final = Metric("vgpu_node_arbiter_up", _G, "1 while the arbiter runs", ("node",))
REGISTERED: Final = Metric("vgpu_node_registered", _G, "1 while the kubelet takes the node's devices", ("node",))
UNREAD: Final = Metric("vgpu_node_unreadable_regions", _G, "Regions of containers that cannot be read", ("node",))
REFUSED: Final = Metric("vgpu_node_refused_containers", _G, "Containers that were refused at their start", ("node",))
FINDINGS: Final = Metric(
    "vgpu_node_findings",
    _G,
    "Processes that use a card without a share, or a share without its limits",
    ("node", "reason"),
)

CATALOGUE: Final = (
    *(row.metric for row in CONTAINER_ROWS),
    WAITS,
    SPACE_GROUP,
    *(row.metric for row in CARD_ROWS),
    GROUP_FAULTS,
    FAULTS,
    XIDS,
    INFO,
    ARBITER,
    REGISTERED,
    UNREAD,
    REFUSED,
    FINDINGS,
)


def families(state: NodeReading) -> list[MetricFamily]:
    """Return the values of all metrics."""
    cards = {card.gpu.card.uuid: _labels(state.node, card.gpu) for card in state.cards}
    containers = [(_container_labels(cards, state.node, container), container) for container in state.containers]
    return [
        *(_family(row, containers) for row in CONTAINER_ROWS),
        MetricFamily(
            WAITS, [((*labels, cause), value) for labels, container in containers for cause, value in _waits(container)]
        ),
        MetricFamily(
            SPACE_GROUP,
            [((*labels, container.space_group), 1) for labels, container in containers if container.space_group],
        ),
        *(_family(row, [(cards[card.gpu.card.uuid], card) for card in state.cards]) for row in CARD_ROWS),
        MetricFamily(
            GROUP_FAULTS,
            [((*cards[gpu], group), count) for (gpu, group), count in state.group_faults.items() if gpu in cards],
        ),
        MetricFamily(FAULTS, [((*cards[card.gpu.card.uuid], card.fault), 1) for card in state.cards if card.fault]),
        MetricFamily(
            XIDS, [((*cards[c.gpu.card.uuid], xid), count) for c in state.cards for xid, count in c.xids.items()]
        ),
        *_of_node(state),
    ]


def _of_node(state: NodeReading) -> list[MetricFamily]:
    node = (state.node,)
    return [
        MetricFamily(INFO, [((state.node, state.version), 1)]),
        MetricFamily(ARBITER, [] if state.arbiter_runs is None else [(node, state.arbiter_runs)]),
        MetricFamily(REGISTERED, [(node, state.is_registered)]),
        MetricFamily(UNREAD, [(node, state.unread_regions)]),
        MetricFamily(REFUSED, [(node, state.refusals)]),
        MetricFamily(FINDINGS, [((state.node, reason), count) for reason, count in state.findings.items()]),
    ]


def _family(row: MetricRow, states: Iterable[tuple[tuple[str, ...], Any]]) -> MetricFamily:
    values = ((labels, row.value(state)) for labels, state in states)
    return MetricFamily(row.metric, [(labels, float(value)) for labels, value in values if value is not None])


def _waits(container: ContainerState) -> list[tuple[str, float]]:
    if container.use is None:
        return []
    activity = container.use.activity
    return [(cause, getattr(activity, cause).ns * _NS) for cause in WAIT_CAUSES]


def _labels(node: NodeName, gpu: Gpu) -> tuple[str, ...]:
    return node, gpu.card.uuid, str(gpu.card.index), gpu.card.model


def _container_labels(
    cards: Mapping[CardUuid, tuple[str, ...]], node: NodeName, container: ContainerState
) -> tuple[str, ...]:
    holder = container.holder
    return (*cards.get(container.gpu, (node, container.gpu, "", "")), holder.namespace, holder.name, holder.container)
