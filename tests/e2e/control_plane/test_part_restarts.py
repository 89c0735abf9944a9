"""Parts of vgpushare that are stopped, killed and started again."""

import collections
import os
import random
import signal
import threading
import time

import pytest

from cluster import progress, wait
from cluster.nodes import serving_process
from cluster.parts import ClusterPart, stopped
from deviceplugin.serving.process import STEADY_S
from tests.e2e import audit, checkpoint
from tests.e2e.churn import (
    PAUSE,
    churn,
    create_slowly,
    has_event,
    offered_slices,
    pending,
    restart_counts,
    small,
    until_slices_are_offered,
)
from tests.e2e.pod_namespace import PodNamespace, container, pod
from vgpu.domain import names

pytestmark = pytest.mark.e2e

BUSY_S = 2.0  # by which a plugin's first process may note on a busy machine that the next one serves
LEASE_S = 3.5  # the plugin's Lease lasts 3 s, and the watch shows its end within 0.5 s


def test_without_the_webhook_gpu_pods_wait_and_other_pods_start(namespace: PodNamespace) -> None:
    with stopped(namespace.cluster.webhook):
        namespace.create(small("waits", gpu_mem=1024))
        namespace.create(pod("plain", container() | PAUSE))
        namespace.running("plain")
        namespace.until(
            lambda: has_event(namespace, "waits", "Insufficient vgpu.io/gpu-mem"), "an event with the reason"
        )
        handmade = small("handmade", gpu_mem=1024)
        handmade["spec"]["schedulerName"] = names.SCHEDULER
        namespace.create(handmade)
        namespace.until(lambda: has_event(namespace, "handmade", "NotAdmitted"), "NotAdmitted")
        assert {namespace.get(name)["spec"].get("nodeName") for name in ("waits", "handmade")} == {None}
    namespace.create(small("runs", gpu_mem=1024))
    namespace.running("runs")
    assert namespace.phases() == {"waits": "Pending", "handmade": "Pending", "plain": "Running", "runs": "Running"}


def registrations(plugin: ClusterPart) -> int:
    """How often a process that serves the kubelet has registered a resource."""
    return plugin.log.read_text().count(": registered\n")


def test_no_pod_fails_while_the_process_that_serves_the_kubelet_is_killed(namespace: PodNamespace) -> None:
    """The container's first process keeps the kubelet's streams, and the kubelet's calls wait for the next process."""
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    with churn(namespace) as created:
        time.sleep(STEADY_S + BUSY_S)  # another test may have started a plugin just now
        for plugin in cluster.plugins * 2:
            count, before = len(created), registrations(plugin)
            namespace.until(lambda: len(created) > count + 6, "pods are created")  # noqa: B023 - asked at once
            os.kill(serving_process(plugin.process.pid), signal.SIGKILL)
            namespace.until(lambda: registrations(plugin) >= before + 2, "the next process serves")  # noqa: B023 - asked at once
            time.sleep(STEADY_S + BUSY_S)
        for node in cluster.nodes:
            checkpoint.assert_no_slice_twice(node)
    bound = audit.bound_at(cluster.control.audit, since, namespace.name)
    failed = audit.failed(cluster.control.audit, since, namespace.name)
    progress.say(f"serving processes killed in a churn: {len(failed)} of {len(bound)} pods failed")
    assert not failed
    assert all(plugin.process.running() for plugin in cluster.plugins)


def test_a_killed_plugin_fails_only_pods_bound_before_its_lease_expired(namespace: PodNamespace) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    killed: list[float] = []
    with churn(namespace) as created:
        for node, plugin in zip(cluster.nodes, cluster.plugins, strict=True):
            namespace.until(lambda: len(created) > 5, "pods are created")
            killed.append(time.time())
            plugin.kill()
            time.sleep(wait.allowed(LEASE_S) + 2)
            plugin.start()
            node.restart_kubelet()
            until_slices_are_offered(namespace, node)
        count = len(created)
        namespace.until(lambda: len(created) > count + 12, "more pods are created")
        for node in cluster.nodes:
            checkpoint.assert_no_slice_twice(node)
    bound = audit.bound_at(cluster.control.audit, since, namespace.name)
    failed = audit.failed(cluster.control.audit, since, namespace.name)
    late = {name: min(bound[name] - at for at in killed if bound[name] > at - 1) for name in failed}
    progress.say(f"plugins killed in a churn: {len(late)} of {len(bound)} pods failed; bound after the kill by {late}")
    too_late = {name: (late[name], failed[name]) for name in late if late[name] > wait.allowed(LEASE_S)}
    assert not too_late


def test_without_the_plugin_its_node_gets_no_pod(namespace: PodNamespace) -> None:
    node, plugin = namespace.cluster.nodes[0], namespace.cluster.plugins[0]
    here = {names.USE_GPU_UUID: node.cards[0].uuid}
    namespace.create(pod("stays", annotations=here, gpu_mem=4096))
    namespace.running("stays")
    with stopped(plugin):
        namespace.until(lambda: offered_slices(namespace.cluster, node) == 0, "the kubelet notices", 20)
        namespace.create(pod("waits", annotations=here, gpu_mem=4096))
        namespace.until(lambda: has_event(namespace, "waits", "PluginAway"), "an event with the reason")
        time.sleep(5)  # longer than the scheduler's other reasons to try the pod again
        assert namespace.phases() == {"stays": "Running", "waits": "Pending"}
    namespace.running("stays", "waits", within_s=20)
    assert restart_counts(namespace) == {"stays": 0, "waits": 0}


def test_a_second_copy_of_the_plugin_takes_over(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    node, plugin = cluster.nodes[0], cluster.plugins[0]
    here = {names.USE_GPU_UUID: node.cards[0].uuid}
    namespace.create(pod("stays", annotations=here, gpu_mem=4096))
    namespace.running("stays")
    second = cluster.maker.plugin(node, "second-deviceplugin")
    second.start()
    plugin.stop()  # its streams end while the second copy is registered
    try:
        namespace.until(lambda: offered_slices(cluster, node) > 0, "the second copy's slices", 20)
        namespace.create(pod("after", annotations=here, gpu_mem=4096))
        namespace.running("stays", "after")
        assert restart_counts(namespace) == {"stays": 0, "after": 0}
    finally:
        second.stop()
        plugin.start()


@pytest.mark.timeout(600)
def test_an_extender_killed_several_times_during_churn_neither_loses_pods_nor_overcommits_cards(
    namespace: PodNamespace,
) -> None:
    cluster, since = namespace.cluster, namespace.cluster.control.audit.stat().st_size
    wanted = [f"p{n}" for n in range(200)]
    chance = random.Random(11)
    creator = threading.Thread(target=create_slowly, args=(namespace, wanted, chance, 0.1))
    creator.start()
    for _ in range(4):  # the next leader waits 15 s each time
        time.sleep(chance.uniform(1, 4))
        cluster.extender.kill()
        cluster.extender.start()
    creator.join()
    namespace.until(lambda: not pending(namespace), "every pod was placed", 240)
    phases = collections.Counter(namespace.phases().values())
    assert set(phases) <= {"Running", "Succeeded"}, phases
    assert sum(phases.values()) == 200
    for card, peak in audit.peaks(cluster.control.audit, since, namespace.name).items():
        assert peak.memory_mib <= 81920, card
        assert peak.cores <= 100, card


def test_a_scheduled_pod_costs_one_api_write(namespace: PodNamespace) -> None:
    since = namespace.cluster.control.audit.stat().st_size
    wanted = [f"p{n}" for n in range(10)]
    for name in wanted:
        namespace.create(small(name, gpu_mem=1024))
    namespace.running(*wanted)
    assert audit.writes(namespace.cluster.control.audit, since, "vgpu-extender") == ["create pods/binding"] * 10
