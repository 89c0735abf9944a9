"""Builds what tells of the plugin's state: the metrics, and what the GPUNode's status says."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import vgpu
from deviceplugin import installation
from deviceplugin.plugin import PluginNode, ResourceEndpoint
from deviceplugin.surroundings import PluginClocks, PluginSurroundings
from vgpu.domain.json_types import JsonObject
from vgpu.node.cards import inventory
from vgpu.node.cards.arbiter import Arbiter
from vgpu.node.cards.health import Health
from vgpu.node.gpunode import card_reports, gpunode_status
from vgpu.node.gpunode.gpunode_spec import SpecHandler
from vgpu.node.gpunode.group_faults import GroupFaults
from vgpu.node.gpunode.refusal_reporter import RefusalReporter
from vgpu.node.gpunode.status_publisher import GpuNodePublisher
from vgpu.node.presence.heartbeat import Heartbeat
from vgpu.node.processes.group_servers import GroupServers
from vgpu.node.processes.process_watch import ProcessWatch
from vgpu.node.usage import kernel_reports
from vgpu.node.usage.node_sources import NodeSources
from vgpu.node.usage.reporter import UsageReporter
from vgpu.node.usage.sampler import UsageSampler


@dataclass(frozen=True, slots=True)
class ReportedParts:
    """The parts whose state metrics and GPUNode show.

    `arbiter`: None where containers take no turns.
    """

    node: PluginNode
    health: Health
    watching: ProcessWatch
    refusals: RefusalReporter
    arbiter: Arbiter | None
    endpoints: Collection[ResourceEndpoint]
    heartbeat: Heartbeat
    servers: GroupServers
    faults: GroupFaults

    def is_registered(self) -> bool:
        """Return whether the kubelet listens to every resource."""
        return all(endpoint.stream.is_live for endpoint in self.endpoints)

    def arbiter_runs(self) -> bool | None:
        """Return whether the arbiter runs; None where containers take no turns."""
        return self.arbiter.is_running if self.arbiter else None


@dataclass(frozen=True, slots=True)
class KernelReports:
    """Where the reports about kernels come from, and the reasons that evict pods."""

    sampler: UsageSampler
    evicts: Collection[str]


def publisher(
    parts: ReportedParts, kernels: KernelReports, used: UsageReporter, spec: SpecHandler, clocks: PluginClocks
) -> GpuNodePublisher:
    """Return what writes the GPUNode; it is woken by every part whose state the status shows."""
    node = parts.node

    def counted(nodes: int) -> None:
        parts.heartbeat.nodes = used.nodes = nodes

    built = GpuNodePublisher(
        node.api,
        node.inventory,
        vgpu.__version__,
        refusals=lambda: [
            *parts.refusals.refusals(),
            *parts.watching.reports(),
            *_of_programs(kernels, parts.faults),
            *_of_unhealthy_cards(node),
        ],
        usage=used.entries,
        card_use=used.card_entries,
        conditions=lambda: (
            *parts.watching.conditions(),
            *gpunode_status.arbiter_condition(parts.arbiter_runs()),
            *gpunode_status.space_condition(
                kernels.sampler.outside_group, is_supervised=node.inventory.state.is_supervised
            ),
        ),
        is_registered=parts.is_registered,
        clock=clocks.monotonic,
        now=clocks.now,
        beside=spec,
        on_count=counted,
    )
    parts.refusals.on_change = parts.watching.on_change = built.wake
    parts.heartbeat.on_change = used.on_change = built.wake
    kernels.sampler.on_change = parts.faults.on_change = built.wake
    return built


def _of_programs(kernels: KernelReports, faults: GroupFaults) -> list[JsonObject]:
    """Return the reports about kernels and about groups in space, which have room for MAX_REPORTED together."""
    found = [*kernels.sampler.kernel_reports(kernels.evicts), *kernels.sampler.space_reports()]
    return [*found, *faults.reports(max(kernel_reports.MAX_REPORTED - len(found), 0))]


def usage_sampler(surroundings: PluginSurroundings, parts: ReportedParts) -> UsageSampler:
    """Return what adds up the containers' use."""
    node, clocks = parts.node, surroundings.clocks
    sources = NodeSources(
        cards=lambda: node.inventory.state,
        allocations=node.proven,
        groups=lambda: parts.watching.groups,
        pods=node.pods.all,
        findings=parts.watching.findings,
        xids=lambda: parts.health.xids,
        arbiter_runs=parts.arbiter_runs,
        is_registered=parts.is_registered,
        refusals=lambda: len(parts.refusals.refusals()),
        slice_mib=node.inventory.slice_mib,
        servers=parts.servers,
        outside_spaces=lambda: parts.watching.outside_spaces,
        group_faults=lambda: parts.faults.counts,
    )
    driver, process = surroundings.driver, surroundings.processes.process
    return UsageSampler(driver, process, node.files, sources, clocks.wall, lambda: int(clocks.monotonic() * 1e9))


def _of_unhealthy_cards(node: PluginNode) -> list[dict[str, Any]]:
    """Return the reports about pods that hold unhealthy or lost cards."""
    state = node.inventory.state
    of_node = (inventory.MIG, installation.FAULT)
    faults = {gpu: fault for gpu, fault in state.faults.items() if fault not in of_node}
    one_process = [
        gpu.card.uuid for gpu in state.gpus if gpu.card.exclusive_process and state.held.slices_of(gpu.card.uuid)
    ]
    faults = dict.fromkeys(one_process, card_reports.ONE_PROCESS) | faults
    return card_reports.reports(faults, state.gpus, node.occupancy.held(), node.pods.all())
