"""Builds the plugin: every object, with what it uses."""

import os
from collections.abc import Collection
from pathlib import Path

import vgpu
from deviceplugin import reporting
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
from deviceplugin.reporting import KernelReports, ReportedParts
from deviceplugin.responses import DeviceList, Injection
from deviceplugin.settings import SOCKETS, PluginSettings
from deviceplugin.surroundings import PluginClocks, PluginSurroundings
from vgpu.adapters import metrics_server
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.adapters.kubernetes.reflector import Reflector
from vgpu.adapters.metrics import Registry
from vgpu.domain import names
from vgpu.domain.identifiers import PodUid
from vgpu.domain.quantity import MIB
from vgpu.node.cards.arbiter import Arbiter
from vgpu.node.cards.diagnosis import CardDiagnosis
from vgpu.node.cards.health import Health
from vgpu.node.cards.inventory import Inventory
from vgpu.node.cards.watermarks import Watermarks
from vgpu.node.containers import bound_pod, node_api
from vgpu.node.containers.allocations import Allocations
from vgpu.node.containers.departed import DepartedHolders
from vgpu.node.containers.limits_writer import LimitsWriter
from vgpu.node.containers.node_api import NodeApi
from vgpu.node.containers.notices import Notices
from vgpu.node.containers.pods import NodePods
from vgpu.node.containers.state_files import StateFiles
from vgpu.node.gpunode import gpunode_spec
from vgpu.node.gpunode.gpunode_spec import SpecHandler
from vgpu.node.gpunode.group_faults import GroupFaults
from vgpu.node.gpunode.refusal_reporter import RefusalReporter
from vgpu.node.gpunode.status_publisher import GpuNodePublisher
from vgpu.node.presence import probe_files
from vgpu.node.presence.heartbeat import Heartbeat
from vgpu.node.presence.node_lease import NodeLease
from vgpu.node.presence.probe_files import ProbeFiles
from vgpu.node.processes import process_watch, share_files
from vgpu.node.processes.group_servers import GroupServers
from vgpu.node.processes.process_watch import NodeKnowledge, ProcessWatch, ProcessWatchSettings
from vgpu.node.space import seen_faults, supervision
from vgpu.node.space.membership import GroupMembership
from vgpu.node.usage import sampler
from vgpu.node.usage.metrics_reader import MetricsReader
from vgpu.node.usage.reporter import UsageReporter
from vgpu.node.usage.sampler import UsageSampler


def build(
    settings: PluginSettings,
    surroundings: PluginSurroundings,
    *,
    search_s: float = DEADLINE_S,
    register_at: Path | None = None,
) -> Plugin:
    """Build a plugin, which searches for `search_s` seconds at most for the container that the kubelet admits.

    `register_at`: folder of the relay's socket; None where the plugin registers with the kubelet itself.

    Raises StateUnusable where containers would run without limits, OSError where the packaged library cannot be read.
    """
    client, clocks = surroundings.client, surroundings.clocks
    limiter = Installation(settings)
    files, library = limiter.files, limiter.install()
    node = _node(settings, files, surroundings)
    watch = _watch_of_pods(settings, client, node.pods, clocks)
    reporter = RefusalReporter(lambda uid: node.pods.get(uid) is not None)
    node_driver = _node_driver(settings, surroundings)
    injection = _injection(settings, files, library, node_driver)
    groups = GroupMembership(files, clocks.monotonic)
    preferred = PreferredAllocation(node.pods, node.allocations, node.departed, node.api, node.pod_resources, search_s)
    verbs = PluginVerbs(preferred, _allocator(node, preferred, injection, clocks), _prover(node, groups, reporter))
    devices = DeviceLists(node.inventory)
    folder = register_at or settings.device_plugins_dir
    endpoints = tuple(_endpoint(folder, resource, devices, verbs) for resource in names.KUBELET_RESOURCES)
    heartbeat = _heartbeat(settings, client, endpoints, clocks)
    card_health = _health(settings, node, surroundings, limiter)
    servers = GroupServers(settings.state_dir, settings.namespace)
    watching = _process_watch(settings, node, surroundings, library, servers)
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
    faults = GroupFaults(
        settings.state_dir,
        clocks.wall,
        node.proven,
        node.pods.all,
        lambda member: seen_faults.seen_in(
            share_files.read_region_header(files.region(member)), clocks.wall, clocks.monotonic
        ),
    )
    reported = ReportedParts(
        node=node,
        health=card_health,
        watching=watching,
        refusals=reporter,
        arbiter=arbiter,
        endpoints=endpoints,
        heartbeat=heartbeat,
        servers=servers,
        faults=faults,
    )
    sampling = reporting.usage_sampler(surroundings, reported)
    spec = SpecHandler(card_health.acknowledge, node.inventory.set_spec, marks, clocks.now)
    used = UsageReporter(sampling.usage, settings.usage_period, read_cards=sampling.card_usage)
    kernels = KernelReports(sampling, settings.evicting_reasons)
    publisher = reporting.publisher(reported, kernels, used, spec, clocks)
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
            faults.run,
            lambda: supervision.watch(settings.state_dir, clocks.wall, node.inventory.set_supervised),
            card_health.poll,
            card_health.listen,
            watching.run,
            publisher.run,
            heartbeat.run,
            collector.run,
            lambda: sampling.run(min(sampler.PERIOD_S, settings.health_period)),
            used.run,
            Notices(node.files, node.proven, lambda uid: _idle_warning(node.pods, uid)).run,
            *_served(settings, surroundings, node.files, sampling),
            ProbeFiles(
                settings.state_dir,
                reported.is_registered,
                lambda: register_at is None or probe_files.is_touched(register_at / probe_files.ALIVE, clocks.wall()),
            ).run,
        ),
    )


def _node(settings: PluginSettings, files: StateFiles, surroundings: PluginSurroundings) -> PluginNode:
    clocks = surroundings.clocks
    pod_resources_client = PodResourcesClient(settings.kubelet_dir / "pod-resources" / "kubelet.sock")
    pod_resources = PodResources(pod_resources_client, clocks.monotonic)
    allocations = Allocations(files.allocations)
    cards = Inventory(settings.slice_mib)
    pods = NodePods()
    mountinfos = process_watch.mountinfos(surroundings.processes, os.getpid())
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
        api=NodeApi(surroundings.client, settings.node_name),
    )
    pods.on_release = node.released
    departed.on_change = node.occupancy.refresh
    return node


def _watch_of_pods(
    settings: PluginSettings, client: KubernetesClient, pods: NodePods, clocks: PluginClocks
) -> Reflector:
    params = {"fieldSelector": f"spec.nodeName={settings.node_name}"}
    return Reflector(client, node_api.pods_path(), pods, jitter=clocks.random, params=params, decode=bound_pod.decode)


def _node_driver(settings: PluginSettings, surroundings: PluginSurroundings) -> NodeDriver | None:
    """Return the driver's files; None where NVIDIA's toolkit brings them. Raises StateUnusable."""
    if not settings.brings_driver:
        return None
    root = DriverRoot(settings.driver_root, surroundings.environment)
    return NodeDriver(root, surroundings.driver.driver_version)


def _injection(settings: PluginSettings, files: StateFiles, library: str, node_driver: NodeDriver | None) -> Injection:
    mode, mounts = DeviceList(settings.device_list), node_driver.mounts if node_driver else tuple
    return Injection(files, library, mode, settings.cdi_kind, settings.driver_root / "dev", mounts)


def _allocator(
    node: PluginNode, preferred: PreferredAllocation, injection: Injection, clocks: PluginClocks
) -> Allocator:
    recorder = AllocationRecorder(node.pods, node.allocations, clocks.new_id, clocks.wall)
    return Allocator(preferred, recorder, node.inventory, injection, node.allocated)


def _prover(node: PluginNode, groups: GroupMembership, reporter: RefusalReporter) -> Prover:
    holders = HolderLookup(node.pods, node.allocations, node.api, node.pod_resources)
    writer = LimitsWriter(node.allocations, node.files)
    return Prover(holders, node.inventory, node.occupancy, writer, groups, reporter.refused)


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
    settings: PluginSettings, node: PluginNode, surroundings: PluginSurroundings, limiter: Installation
) -> Health:
    return Health(
        surroundings.driver,
        node.inventory,
        CardDiagnosis(settings.xid_quarantine, settings.recovery_polls),
        node_fault=limiter.fault,
        offers=OtherPlugins(node.client).offers,
        poll_s=settings.health_period,
        clock=surroundings.clocks.monotonic,
    )


def _process_watch(
    settings: PluginSettings, node: PluginNode, surroundings: PluginSurroundings, library: str, servers: GroupServers
) -> ProcessWatch:
    processes = surroundings.processes
    rules = ProcessWatchSettings(
        allowed=settings.allowed_commands,
        period_s=settings.health_period,
        tolerance_bytes=settings.memory_tolerance_mib * MIB,
        evicts=settings.evicting_reasons,
        tells_files_apart=processes.tells_files_apart(node.files.libraries.library(library)),
    )
    known = NodeKnowledge(
        node.inventory.gpus,
        node.pods.all,
        node.occupancy.held,
        node.proven,
        lambda pid, process, pods: servers.group_of(pid, process, pods) is not None,
    )
    return ProcessWatch(surroundings.driver, processes, known, node.files, rules, os.getpid())


def _idle_warning(pods: NodePods, uid: PodUid) -> str:
    pod = pods.get(uid)
    return pod.idle_warning if pod else ""


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


def _served(
    settings: PluginSettings, surroundings: PluginSurroundings, files: StateFiles, sampling: UsageSampler
) -> tuple[Run, ...]:
    """Return what serves the metrics; nothing where they are not served."""
    address = settings.metrics_listen
    if address is None:
        return ()
    reader = MetricsReader(
        settings.node_name,
        vgpu.__version__,
        surroundings.driver,
        surroundings.processes.process,
        files,
        sampling,
        with_dcgm=settings.dcgm_names,
    )
    registry = Registry()
    registry.add(reader.collect)
    return (lambda: metrics_server.serve(registry, address, surroundings.clocks.monotonic, blocks=True),)


def _turns(
    settings: PluginSettings, files: StateFiles, clocks: PluginClocks
) -> tuple[Arbiter | None, Watermarks | None]:
    """Return what gives containers turns on a card: the arbiter, and the receiver of its watermarks."""
    if not settings.turns:
        return None, None
    arbiter = Arbiter(settings.arbiter_path(), files.watermarks, files.allocations, clocks.monotonic)
    return arbiter, Watermarks(files.watermarks, settings.watermark)
