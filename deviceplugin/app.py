"""Builds the plugin: every object, with what it uses."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import vgpu
from deviceplugin import installation
from deviceplugin.allocate import AllocationRecorder, Allocator
from deviceplugin.candidate_search import DEADLINE_S
from deviceplugin.devices import DeviceLists
from deviceplugin.driver.cdi import SpecificationFile
from deviceplugin.driver.discovery import DriverRoot
from deviceplugin.driver.node_driver import DriverWatch, NodeDriver
from deviceplugin.garbage_collection import GarbageCollector
from deviceplugin.holder_lookup import HolderLookup
from deviceplugin.installation import Installation
from deviceplugin.kubelet.pod_resources_client import PodResourcesClient
from deviceplugin.kubelet.registration import ListAndWatchStreams, Registration
from deviceplugin.kubelet.server import ResourceServer, Service
from deviceplugin.occupancy import Occupancy
from deviceplugin.other_plugins import OtherPlugins
from deviceplugin.plugin import Plugin, PluginNode, PluginVerbs, ResourceEndpoint, Run
from deviceplugin.pod_resources import PodResources
from deviceplugin.preferred_allocation import PreferredAllocation
from deviceplugin.prestart import Prover
from deviceplugin.responses import DeviceList, Injection
from deviceplugin.settings import SOCKETS, PluginSettings
from vgpu.adapters import metrics_server
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.adapters.metrics import Registry
from vgpu.domain import names
from vgpu.domain.identifiers import PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.cards import health, inventory
from vgpu.node.cards.arbiter import Arbiter
from vgpu.node.cards.diagnosis import CardDiagnosis
from vgpu.node.cards.health import Health
from vgpu.node.cards.inventory import Inventory
from vgpu.node.cards.watermarks import Watermarks
from vgpu.node.containers import node_api
from vgpu.node.containers import pods as bound
from vgpu.node.containers.allocations import Allocations
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.limits_writer import LimitsWriter
from vgpu.node.containers.node_api import NodeApi
from vgpu.node.containers.notices import Notices
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.gpunode import card_reports, gpunode_spec, gpunode_status
from vgpu.node.gpunode.gpunode_spec import SpecHandler
from vgpu.node.gpunode.refusal_reporter import RefusalReporter
from vgpu.node.gpunode.status_publisher import GpuNodePublisher
from vgpu.node.presence import probe_files
from vgpu.node.presence.heartbeat import Heartbeat
from vgpu.node.presence.node_lease import NodeLease
from vgpu.node.presence.probe_files import ProbeFiles
from vgpu.node.processes import process_watch
from vgpu.node.processes.process_watch import NodeKnowledge, Processes, ProcessWatch, ProcessWatchSettings
from vgpu.node.space.membership import GroupMembership
from vgpu.node.usage import metrics_reader
from vgpu.node.usage.metrics_reader import MetricsReader, NodeSources
from vgpu.node.usage.reporter import UsageReporter


@dataclass(frozen=True, slots=True)
class PluginClocks:
    """Time and randomness, which only `__main__` reads.

    Attributes:
        monotonic: seconds that never go back.
        wall: seconds since 1970.
        now: date and time with the time zone.
        new_id: returns a name that never repeats.
        random: returns a random number from 0 to 1.
    """

    monotonic: Callable[[], float]
    wall: Callable[[], float]
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    random: Callable[[], float]


class PluginDriver(health.HealthDriver, process_watch.ProcessDriver, metrics_reader.MetricsDriver, Protocol):
    """What is asked of NVML."""

    def driver_version(self) -> str:
        """Return the driver's version. Raises NvmlError."""
        ...


def build(
    settings: PluginSettings,
    driver: PluginDriver,
    processes: Processes,
    client: KubernetesClient,
    clocks: PluginClocks,
    *,
    search_s: float = DEADLINE_S,
    environment: Mapping[str, str] | None = None,
    register_at: Path | None = None,
) -> Plugin:
    """Build a plugin, which searches for `search_s` seconds at most for the container that the kubelet admits.

    `environment`: where programs and libraries of the driver may be besides the usual places. `register_at`: folder of
    the relay's socket; None where the plugin registers with the kubelet itself.

    Raises StateUnusable where containers would run without limits, OSError where the packaged library cannot be read.
    """
    limiter = Installation(settings)
    files, library = limiter.files, limiter.install()
    node = _node(settings, files, client, processes, clocks)
    watch = _watch_of_pods(settings, client, node.pods, clocks)
    reporter = RefusalReporter(lambda uid: node.pods.get(uid) is not None)
    node_driver = _node_driver(settings, driver, environment or {})
    injection = _injection(settings, files, library, node_driver)
    groups = GroupMembership(files, clocks.monotonic)
    verbs = _verbs(node, injection, groups, reporter, clocks, search_s)
    devices = DeviceLists(node.inventory)
    folder = register_at or settings.device_plugins_dir
    endpoints = tuple(_endpoint(folder, resource, devices, verbs) for resource in names.KUBELET_RESOURCES)
    heartbeat = _heartbeat(settings, client, endpoints, clocks)
    card_health = _health(settings, node, driver, limiter, clocks)
    watching = _process_watch(settings, node, driver, processes, library)
    collector = GarbageCollector(
        node.pods,
        node.pod_resources,
        node.allocations,
        node.departed,
        files,
        groups,
        library,
        synced=watch.synced,
        wall_clock=clocks.wall,
    )
    arbiter, marks = _turns(settings, files, clocks)
    reader = _metrics(settings, node, driver, processes, watching, card_health, arbiter, reporter, endpoints, clocks)
    spec = SpecHandler(card_health.acknowledge, node.inventory.set_spec, marks, clocks.now)
    used = UsageReporter(reader.usage, settings.usage_period, read_cards=reader.card_usage)
    kernels = _KernelReports(reader, settings.evicting_reasons)
    publisher = _publisher(node, reporter, watching, kernels, used, endpoints, heartbeat, spec, arbiter, clocks)
    return Plugin(
        node=node,
        health=card_health,
        watch=watch,
        endpoints=endpoints,
        heartbeat=heartbeat,
        early=(
            *((arbiter.run,) if arbiter else ()),
            *_driver_watch(settings, node, injection, node_driver),
            _watch_of_gpunode(settings, client, publisher, clocks).run,
            watch.run,
        ),
        late=(
            lambda: node.pod_resources.run(node.occupancy.refresh),
            node.departed.run,
            card_health.poll,
            card_health.listen,
            watching.run,
            publisher.run,
            heartbeat.run,
            collector.run,
            lambda: reader.run(min(metrics_reader.PERIOD_S, settings.health_period)),
            used.run,
            Notices(node.files, node.proven, lambda uid: _idle_warning(node.pods, uid)).run,
            *_served(settings, reader, clocks),
            ProbeFiles(
                settings.state_dir,
                lambda: all(endpoint.stream.is_live for endpoint in endpoints),
                lambda: register_at is None or probe_files.is_touched(register_at / probe_files.ALIVE, clocks.wall()),
            ).run,
        ),
    )


def _node(
    settings: PluginSettings, files: StateFiles, client: KubernetesClient, processes: Processes, clocks: PluginClocks
) -> PluginNode:
    pod_resources_client = PodResourcesClient(settings.kubelet_dir / "pod-resources" / "kubelet.sock")
    pod_resources = PodResources(pod_resources_client, clocks.monotonic)
    allocations = Allocations(files.allocations)
    cards = Inventory(settings.slice_mib)
    pods = NodePods()
    mountinfos = process_watch.mountinfos(processes, os.getpid())
    departed = DepartedHolders(pods, allocations, mountinfos, clocks.monotonic)
    node = PluginNode(
        files=files,
        allocations=allocations,
        departed=departed,
        inventory=cards,
        pods=pods,
        client=pod_resources_client,
        pod_resources=pod_resources,
        occupancy=Occupancy(pods, pod_resources, allocations, departed, cards, clocks.wall),
        api=NodeApi(client, settings.node_name),
    )
    pods.on_release = node.released
    departed.on_change = node.occupancy.refresh
    return node


def _watch_of_pods(
    settings: PluginSettings, client: KubernetesClient, pods: NodePods, clocks: PluginClocks
) -> Reflector:
    params = {"fieldSelector": f"spec.nodeName={settings.node_name}"}
    return Reflector(client, node_api.pods_path(), pods, jitter=clocks.random, params=params, decode=bound.decode)


def _node_driver(settings: PluginSettings, driver: PluginDriver, environment: Mapping[str, str]) -> NodeDriver | None:
    """Return the driver's files; None where NVIDIA's toolkit brings them. Raises StateUnusable."""
    if not settings.brings_driver:
        return None
    return NodeDriver(DriverRoot(settings.driver_root, environment), driver.driver_version)


def _injection(settings: PluginSettings, files: StateFiles, library: str, node_driver: NodeDriver | None) -> Injection:
    mode, mounts = DeviceList(settings.device_list), node_driver.mounts if node_driver else tuple
    return Injection(files, library, mode, settings.cdi_kind, settings.driver_root / "dev", mounts)


def _verbs(
    node: PluginNode,
    injection: Injection,
    groups: GroupMembership,
    reporter: RefusalReporter,
    clocks: PluginClocks,
    search_s: float,
) -> PluginVerbs:
    preferred = PreferredAllocation(node.pods, node.allocations, node.departed, node.api, node.pod_resources, search_s)
    recorder = AllocationRecorder(node.pods, node.allocations, clocks.new_id, clocks.wall)
    holders = HolderLookup(node.pods, node.allocations, node.api, node.pod_resources)
    writer = LimitsWriter(node.allocations, node.files)
    return PluginVerbs(
        preferred,
        Allocator(preferred, recorder, node.inventory, injection, node.allocated),
        Prover(holders, node.inventory, node.occupancy, writer, groups, reporter.refused),
    )


def _driver_watch(
    settings: PluginSettings, node: PluginNode, injection: Injection, node_driver: NodeDriver | None
) -> tuple[Run, ...]:
    """Return what follows the node's driver; nothing where NVIDIA's toolkit does."""
    if node_driver is None:
        return ()
    specification = SpecificationFile(settings.cdi_dir) if settings.writes_cdi else None
    return (DriverWatch(node_driver, node.inventory, injection.control_nodes, specification).run,)


def _endpoint(directory: Path, resource: str, devices: DeviceLists, verbs: PluginVerbs) -> ResourceEndpoint:
    socket, stream = SOCKETS[resource], ListAndWatchStreams()
    server = ResourceServer(directory / socket, Service(resource, devices, verbs, stream).handlers())
    return ResourceEndpoint(stream, server, Registration(directory, resource, socket, stream, server.ensure))


def _heartbeat(
    settings: PluginSettings, client: KubernetesClient, endpoints: Collection[ResourceEndpoint], clocks: PluginClocks
) -> Heartbeat:
    lease = NodeLease(client, settings.namespace, settings.node_name, clocks.now)
    heartbeat = Heartbeat(lease, lambda: all(endpoint.stream.is_live for endpoint in endpoints), clocks.monotonic)
    for endpoint in endpoints:
        endpoint.stream.on_change = heartbeat.wake
    return heartbeat


def _health(
    settings: PluginSettings, node: PluginNode, driver: PluginDriver, limiter: Installation, clocks: PluginClocks
) -> Health:
    return Health(
        driver,
        node.inventory,
        CardDiagnosis(settings.xid_quarantine, settings.recovery_polls),
        node_fault=limiter.fault,
        offers=OtherPlugins(node.client).offers,
        poll_s=settings.health_period,
        clock=clocks.monotonic,
    )


def _process_watch(
    settings: PluginSettings, node: PluginNode, driver: PluginDriver, processes: Processes, library: str
) -> ProcessWatch:
    rules = ProcessWatchSettings(
        allowed=settings.allowed_commands,
        period_s=settings.health_period,
        tolerance_bytes=settings.memory_tolerance_mib * MIB,
        evicts=settings.evicting_reasons,
        tells_files_apart=processes.tells_files_apart(node.files.libraries.library(library)),
    )
    known = NodeKnowledge(node.inventory.gpus, node.pods.all, node.occupancy.held, node.proven)
    return ProcessWatch(driver, processes, known, node.files, rules, os.getpid())


def _publisher(
    node: PluginNode,
    reporter: RefusalReporter,
    watching: ProcessWatch,
    kernels: "_KernelReports",
    used: UsageReporter,
    endpoints: Collection[ResourceEndpoint],
    heartbeat: Heartbeat,
    spec: SpecHandler,
    arbiter: Arbiter | None,
    clocks: PluginClocks,
) -> GpuNodePublisher:

    def counted(nodes: int) -> None:
        heartbeat.nodes = used.nodes = nodes

    publisher = GpuNodePublisher(
        node.api,
        node.inventory,
        vgpu.__version__,
        refusals=lambda: [
            *reporter.refusals(),
            *watching.reports(),
            *kernels.reader.kernel_reports(kernels.evicts),
            *_of_unhealthy_cards(node),
        ],
        usage=used.entries,
        card_use=used.card_entries,
        conditions=lambda: (
            *watching.conditions(),
            *gpunode_status.arbiter_condition(arbiter.is_running if arbiter else None),
        ),
        is_registered=lambda: all(endpoint.stream.is_live for endpoint in endpoints),
        clock=clocks.monotonic,
        now=clocks.now,
        beside=spec,
        on_count=counted,
    )
    reporter.on_change = watching.on_change = heartbeat.on_change = used.on_change = publisher.wake
    kernels.reader.on_change = publisher.wake
    return publisher


@dataclass(frozen=True, slots=True)
class _KernelReports:
    """Where the reports about kernels come from, and the reasons that evict pods."""

    reader: MetricsReader
    evicts: Collection[str]


def _idle_warning(pods: NodePods, uid: PodUid) -> str:
    pod = pods.get(uid)
    return pod.idle_warning if pod else ""


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


def _watch_of_gpunode(
    settings: PluginSettings, client: KubernetesClient, publisher: GpuNodePublisher, clocks: PluginClocks
) -> Reflector:
    return Reflector(
        client,
        names.GPUNODES_PATH,
        publisher,
        jitter=clocks.random,
        params={"fieldSelector": f"metadata.name={settings.node_name}"},
        decode=gpunode_spec.decode,
    )


def _metrics(
    settings: PluginSettings,
    node: PluginNode,
    driver: PluginDriver,
    processes: Processes,
    watching: ProcessWatch,
    card_health: Health,
    arbiter: Arbiter | None,
    reporter: RefusalReporter,
    endpoints: Collection[ResourceEndpoint],
    clocks: PluginClocks,
) -> MetricsReader:
    sources = NodeSources(
        cards=lambda: node.inventory.state,
        allocations=node.proven,
        groups=lambda: watching.groups,
        pods=node.pods.all,
        findings=watching.findings,
        xids=lambda: card_health.xids,
        arbiter_runs=lambda: arbiter.is_running if arbiter else None,
        is_registered=lambda: all(endpoint.stream.is_live for endpoint in endpoints),
        refusals=lambda: len(reporter.refusals()),
        slice_mib=node.inventory.slice_mib,
    )
    return MetricsReader(
        settings.node_name,
        vgpu.__version__,
        driver,
        processes.process,
        node.files,
        sources,
        clocks.wall,
        lambda: int(clocks.monotonic() * 1e9),
        with_dcgm=settings.dcgm_names,
    )


def _served(settings: PluginSettings, reader: MetricsReader, clocks: PluginClocks) -> tuple[Run, ...]:
    """Return what serves the metrics; nothing where they are not served."""
    address = settings.metrics_listen
    if address is None:
        return ()
    registry = Registry()
    registry.add(reader.collect)
    return (lambda: metrics_server.serve(registry, address, clocks.monotonic, blocks=True),)


def _turns(
    settings: PluginSettings, files: StateFiles, clocks: PluginClocks
) -> tuple[Arbiter | None, Watermarks | None]:
    """Return what gives containers turns on a card: the arbiter, and the receiver of its watermarks."""
    if not settings.turns:
        return None, None
    arbiter = Arbiter(settings.arbiter_path(), files.watermarks, files.allocations, clocks.monotonic)
    return arbiter, Watermarks(files.watermarks, settings.watermark)
