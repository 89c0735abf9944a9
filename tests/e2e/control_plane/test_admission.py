"""Which objects and changes the API server accepts, by its policies and by the webhook."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import yaml

from cluster import accounts, api, wait
from cluster.cluster import GpuCluster
from cluster.programs import binaries
from tests.e2e.pod_namespace import Document, PodNamespace, container, pod
from vgpu.domain import names, slices
from vgpu.domain.identifiers import NodeName

pytestmark = pytest.mark.e2e

FORGED = {names.ASSIGNMENT: '{"v":1,"containers":{}}'}
MANIFESTS = binaries.REPOSITORY / "manifests"


def waiting(name: str) -> Document:
    """A pod with a share whose node selector matches no node."""
    manifest = pod(name, gpu_mem=256)
    manifest["spec"]["nodeSelector"] = {"no-such": "node"}
    return manifest


def patched(namespace: PodNamespace, name: str, body: Document, subresource: str = "") -> str:
    """The API server's message for a refused patch; empty where the patch is accepted."""
    try:
        namespace.cluster.api.patch(f"{namespace.pods_path}/{name}{subresource}", body)
    except api.RequestRefused as refused:
        return refused.message
    return ""


def annotated(**annotations: str | None) -> Document:
    return {
        "metadata": {"annotations": {names.DOMAIN + "/" + key.replace("_", "-"): v for key, v in annotations.items()}}
    }


def test_only_the_extender_binds_with_an_assignment(namespace: PodNamespace) -> None:
    namespace.create(waiting("p"))
    target = {"apiVersion": "v1", "kind": "Node", "name": namespace.cluster.nodes[0].name}
    binding = {"metadata": {"name": "p", "annotations": FORGED}, "target": target}
    for path in (f"{namespace.pods_path}/p/binding", f"{namespace.path}/bindings"):
        with pytest.raises(api.RequestRefused, match="only the extender"):
            namespace.cluster.api.create(path, {"apiVersion": "v1", "kind": "Binding", **binding})


def assignment_text(namespace: PodNamespace, name: str) -> str | None:
    annotations: dict[str, str] = namespace.get(name)["metadata"].get("annotations", {})
    return annotations.get(names.ASSIGNMENT)


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_a_pods_assignment_and_policies_are_immutable(namespace: PodNamespace, subresource: str) -> None:
    namespace.create(waiting("waits"))
    namespace.create(pod("runs", gpu_mem=256, annotations={names.GPU_POLICY: "spread"}))
    namespace.running("runs")
    for name, value in (("waits", "x"), ("waits", ""), ("runs", "x"), ("runs", None)):
        before = assignment_text(namespace, name)
        refused = patched(namespace, name, annotated(assignment=value), subresource)
        assert "written once" in refused or not subresource, "the webhook sees no status"
        assert assignment_text(namespace, name) == before
    with without_webhook(namespace.cluster):
        assert "written once" in patched(namespace, "runs", annotated(assignment=None), subresource)
    assert "once the pod is bound" in patched(namespace, "runs", annotated(compute_policy="best-effort"), subresource)
    assert "once the pod is bound" in patched(namespace, "runs", annotated(gpu_policy=None), subresource)


def copied(live: Document, name: str) -> Document:
    """A new pod from a live one, as Velero restores it: without node, status, and what the API server sets."""
    metadata = {key: live["metadata"].get(key, {}) for key in ("annotations", "labels")}
    spec = {key: value for key, value in live["spec"].items() if key not in ("nodeName", "priority")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": name}, "spec": spec}


def test_a_pod_that_is_restored_from_its_live_copy_runs(namespace: PodNamespace) -> None:
    """The copy carries the assignment of the first pod, on whose card there is no room left."""
    node = namespace.cluster.nodes[0]
    first = pod("first", gpu_mem=node.cards[0].memory_mib)
    namespace.create(first)
    (live,) = namespace.running("first")
    assert names.ASSIGNMENT in live["metadata"]["annotations"]
    restored = namespace.create(copied(live, "restored"))
    assert names.ASSIGNMENT not in restored["metadata"].get("annotations", {})
    namespace.create(pod("forged", gpu_mem=256, annotations=FORGED))
    namespace.create(pod("plain", container(), annotations=FORGED))
    namespace.running("restored", "forged", "plain")
    assert names.ASSIGNMENT not in namespace.get("plain")["metadata"].get("annotations", {})
    cards = [namespace.assignment(name).gpus() for name in ("first", "restored")]
    assert cards[0].isdisjoint(cards[1])


def test_kubectl_debug_copies_a_running_pod_with_its_annotations(namespace: PodNamespace) -> None:
    namespace.create(pod("p", gpu_mem=256, annotations={names.GPU_POLICY: "spread"}))
    namespace.running("p")
    copy = ("debug", "p", "--copy-to=copy", "--keep-annotations", "--image=docker.io/local/pause:1", "-c", "debugger")
    namespace.cluster.kubectl("-n", namespace.name, *copy)
    (made,) = namespace.running("copy")
    assert made["metadata"]["annotations"][names.GPU_POLICY] == "spread"
    env = {container["name"]: container.get("env") for container in made["spec"]["containers"]}
    assert env["debugger"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def manifests_to_apply() -> Iterator[Document]:
    """Bare pods in which admission changes something that the manifest says."""
    yield pod("hami", container(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}))
    yield pod("percent", container(limits={names.GPU_MEM_PERCENTAGE: "5", names.GPU: "2"}))
    yield pod("gpushare", container(limits={"aliyun.com/gpu-mem": "1"}), container("side"))
    volcano = pod("volcano", container(limits={"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024"}))
    volcano["spec"]["schedulerName"] = "volcano"
    yield volcano
    yield pod("copy", gpu_mem=256, annotations=FORGED)
    init = container("init", command=("true",), limits={"nvidia.com/gpumem": "1000"})
    yield pod("init", container(limits={"nvidia.com/gpumem": "1000"}), init=[init])


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
@pytest.mark.parametrize("manifest", list(manifests_to_apply()), ids=lambda manifest: manifest["metadata"]["name"])
def test_an_unchanged_manifest_may_be_applied_again(
    namespace: PodNamespace, manifest: Document, how: tuple[str, ...]
) -> None:
    name, text = manifest["metadata"]["name"], json.dumps(manifest)
    apply = ("-n", namespace.name, "apply", *how, "-f", "-")
    namespace.cluster.kubectl(*apply, stdin=text)
    namespace.running(name)
    before = namespace.get(name)
    said = namespace.cluster.kubectl(*apply, stdin=text)
    assert f"pod/{name}" in said
    after = namespace.get(name)
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    if name == "hami":
        more = text.replace('"4000"', '"8000"')
        assert "pod updates may not change" in namespace.cluster.kubectl(*apply, stdin=more, check=False)


def test_labels_finalizers_and_status_of_a_running_pod_may_change(namespace: PodNamespace) -> None:
    namespace.create(pod("p", gpu_mem=256))
    namespace.running("p")
    assert not patched(namespace, "p", {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    assert not patched(namespace, "p", {"metadata": {"finalizers": ["example.com/f"]}})
    assert not patched(namespace, "p", {"metadata": {"finalizers": None}})
    assert not patched(namespace, "p", {"status": {"message": "m"}}, "/status")


def test_a_pending_pod_may_change_its_policy_to_a_known_policy(namespace: PodNamespace) -> None:
    namespace.create(waiting("p"))
    assert not patched(namespace, "p", annotated(gpu_policy="spread"))
    assert "binpack, spread" in patched(namespace, "p", annotated(gpu_policy="tetris"))


def test_an_ephemeral_container_gets_no_cards(namespace: PodNamespace) -> None:
    namespace.create(pod("p", gpu_mem=256))
    namespace.running("p")
    debug = ("-n", namespace.name, "debug", "p", "--image=docker.io/local/pause:1")
    refused = namespace.cluster.kubectl(*debug, "-c", "greedy", "--env=NVIDIA_VISIBLE_DEVICES=all", check=False)
    assert "NVIDIA_VISIBLE_DEVICES" in refused
    namespace.cluster.kubectl(*debug, "-c", "modest")
    assert [c["name"] for c in namespace.get("p")["spec"]["ephemeralContainers"]] == ["modest"]


@contextmanager
def without_webhook(cluster: GpuCluster) -> Iterator[None]:
    cluster.webhook.stop()
    try:
        yield
    finally:
        cluster.webhook.start()


def test_policies_refuse_ways_round_the_scheduler_while_the_webhook_is_down(namespace: PodNamespace) -> None:
    node = namespace.cluster.nodes[0].name
    placed = pod("p", gpu_mem=256)
    placed["spec"]["nodeName"] = node
    foreign = pod("p", container(limits={"nvidia.com/gpumem": "256"}))
    foreign["spec"]["nodeName"] = node
    static = {**placed, "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    visible = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    greedy = pod("p", container(gpu_mem=256), container("side") | {"env": visible})
    with without_webhook(namespace.cluster):
        assert "never by a user" in namespace.refused(pod("p", container(), annotations=FORGED))
        assert "added by the webhook" in namespace.refused(pod("p", container(limits={names.SLICE: "1"})))
        assert "added by the webhook" in namespace.refused(pod("p", container(limits={names.CARD: "1"})))
        for manifest in (placed, foreign, static):
            assert "bypass the scheduler" in namespace.refused(manifest)
        assert "NVIDIA_VISIBLE_DEVICES" in namespace.refused(greedy)
        plain = pod("plain", container() | {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]})
        plain["spec"]["nodeName"] = node
        namespace.create(plain)


def scheduled(manifest: Document, scheduler: str = names.SCHEDULER) -> Document:
    manifest["spec"]["schedulerName"] = scheduler
    return manifest


def test_policies_refuse_devices_written_by_hand_while_the_webhook_is_down(namespace: PodNamespace) -> None:
    """The kubelet would hold the slices or the card of such a pod, whatever the extender says."""
    void = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}
    share = {names.GPU_MEM: "256", names.SLICE: "1"}
    with without_webhook(namespace.cluster):
        for limits in ({names.GPU_MEM: "0", names.SLICE: "64"}, {names.GPU: "0", names.CARD: "4"}):
            for scheduler in (names.SCHEDULER, "default-scheduler"):
                refused = namespace.refused(scheduled(pod("p", container(limits=limits)), scheduler))
                assert "greater than zero" in refused
            init = pod("p", container(), init=[container("init", limits=limits)])
            assert "greater than zero" in namespace.refused(init)
        for scheduler in ("default-scheduler", "other"):
            refused = namespace.refused(scheduled(pod("p", container(limits=share)), scheduler))
            assert "schedulerName vgpu-scheduler" in refused
        beside = scheduled(pod("p", container(limits=share), container("side")))
        assert "NVIDIA_VISIBLE_DEVICES=void" in namespace.refused(beside)
        beside["spec"]["containers"][1] |= void
        namespace.create(beside)
    namespace.running("p")


@pytest.mark.parametrize("resource", [names.SLICE, names.GPU_MEM])
def test_a_running_pods_devices_do_not_change_by_a_resize(namespace: PodNamespace, resource: str) -> None:
    namespace.create(pod("p", gpu_mem=256))
    namespace.running("p")
    for subresource in ("", "/resize"):
        limits = {"limits": {resource: "8"}, "requests": {resource: "8"}}
        body = {"spec": {"containers": [{**namespace.get("p")["spec"]["containers"][0], "resources": limits}]}}
        assert patched(namespace, "p", body, subresource)
    assert namespace.get("p")["spec"]["containers"][0]["resources"]["limits"][names.GPU_MEM] == "256"


def test_cards_are_chosen_by_requests_only(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    everything = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    from_name = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    for env in (everything, from_name):
        assert "nobody accounts for" in namespace.refused(pod("p", container() | {"env": env}))
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/var/run/nvidia-container-devices/all"}]}
    mounted = pod("p", container() | mount)
    mounted["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
    assert "hand over cards" in namespace.refused(mounted)
    annotated_pod = pod("p", container(), annotations={"cdi.k8s.io/x": "nvidia.com/gpu=all"})
    assert "hand over cards" in namespace.refused(annotated_pod)
    namespace.create(waiting("waits"))
    later = {"metadata": {"annotations": {"cdi.k8s.io/x": "nvidia.com/gpu=all"}}}
    assert "hand over cards" in patched(namespace, "waits", later)
    legacy = [{"name": "CUDA_VERSION", "value": "11.0"}]  # NVIDIA's runtime gives a legacy image all cards
    assert "CUDA_VERSION" in namespace.refused(pod("p", container() | {"env": legacy}))
    namespace.create(pod("legacy", container(gpu_mem=256) | {"env": legacy}, container("side") | {"env": legacy}))
    namespace.create(pod("sees-nothing", gpu_mem=256))
    cluster.api.patch(namespace.path, {"metadata": {"labels": {names.VISIBLE_DEVICES_LABEL: "allowed"}}})

    def is_admitted() -> bool:
        seeing = pod("p", container() | {"env": everything})
        with suppress(api.RequestRefused):  # the API server's policies see the namespace's label a moment later
            return bool(cluster.api.request("POST", namespace.pods_path, seeing, query={"dryRun": "All"}))
        return False

    namespace.until(is_admitted, "the exempted namespace admits the pod")


@pytest.mark.parametrize("path", ["/etc/ld.so.preload", "/run/vgpu", "/usr//local/./vgpu/x", "/a/../run/vgpu"])
def test_no_volume_covers_vgpushares_files(namespace: PodNamespace, path: str) -> None:
    def mounted(name: str) -> Document:
        manifest = pod(name, container(gpu_mem=256) | {"volumeMounts": [{"name": "v", "mountPath": path}]})
        manifest["spec"]["volumes"] = [{"name": "v", "emptyDir": {}}]
        return manifest

    assert "/etc/ld.so.preload" in namespace.refused(mounted("p"))
    with without_webhook(namespace.cluster):
        assert "cover vgpushare's files" in namespace.refused(mounted("p"))


def test_the_namespace_bounds_the_priority(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    high = pod("p", gpu_mem=256, annotations={names.PRIORITY: "5"})
    assert "limit of 0" in namespace.refused(high)
    namespace.create(waiting("waits"))
    assert "limit of 0" in patched(namespace, "waits", annotated(priority="5"))
    cluster.api.patch(namespace.path, {"metadata": {"labels": {names.MAX_PRIORITY_LABEL: "5"}}})
    namespace.until(lambda: not patched(namespace, "waits", annotated(priority="5")), "the label is in force")
    namespace.create(high)
    assert "limit of 5" in namespace.refused(pod("q", gpu_mem=256, annotations={names.PRIORITY: "6"}))


def test_no_user_evicts_others_by_a_priority_class_of_kubernetes(namespace: PodNamespace) -> None:
    """Kubernetes itself admits its system classes in every namespace."""
    for name in ("system-node-critical", "system-cluster-critical"):
        manifest = pod("p", gpu_mem=256)
        manifest["spec"]["priorityClassName"] = name
        assert "system classes" in namespace.refused(manifest)
        plain = pod(name, container())
        plain["spec"]["priorityClassName"] = name
        namespace.create(plain)


def deep(manifest: Document, levels: int) -> bytes:
    """A pod with managedFields of that depth: longer than json.dumps can write."""
    fields = '{"f:metadata":' + '{"f:a":' * levels + "{}" + "}" * levels + "}"
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": "DEEP"}
    manifest["metadata"]["managedFields"] = [entry]
    return json.dumps(manifest).replace('"DEEP"', fields).encode()


@pytest.mark.parametrize("levels", [1_200, 9_900])
def test_deep_pods_stop_nothing(namespace: PodNamespace, levels: int) -> None:
    """The API server stores them; extender, device plugins and webhook read them as any other pod."""
    cluster = namespace.cluster
    plain = pod("plain", container(), annotations={f"{names.DOMAIN}/note": "x"})
    plain["spec"]["nodeName"] = cluster.nodes[0].name
    for manifest in (plain, pod("shared", gpu_mem=256)):
        created = cluster.api._http.post(
            namespace.pods_path, content=deep(manifest, levels), headers={"Content-Type": "application/json"}
        )
        assert created.is_success, created.text[:300]
        assert len(created.content) > 7 * levels
    namespace.running("plain", "shared")
    namespace.create(pod("after", gpu_mem=256))
    namespace.running("after")
    refused = cluster.api._http.post(
        namespace.pods_path,
        content=deep(pod("wrong", gpu_mem="16Gi"), levels),
        headers={"Content-Type": "application/json"},
    )
    assert "write 16384" in refused.json()["message"]


def test_a_pod_longer_than_the_webhook_reads_is_denied(namespace: PodNamespace) -> None:
    """In the review each `<` has six characters."""
    manifest = pod("p", container(gpu_mem=256) | {"args": ["<" * 1_400_000]})
    assert "longer than 8 MiB" in namespace.refused(manifest)


def test_annotations_of_hami_choose_the_policy(namespace: PodNamespace) -> None:
    manifest = pod("p", container(limits={"nvidia.com/gpumem": "256"}), annotations={"nvidia.com/use-gputype": "none"})
    created = namespace.create(manifest)
    assert created["metadata"]["annotations"][names.USE_GPU_MODEL] == "none"
    assert created["spec"]["schedulerName"] == names.SCHEDULER
    priority = pod("q", container(limits={"nvidia.com/gpumem": "256", "nvidia.com/priority": "1"}))
    assert "nvidia.com/priority" in namespace.refused(priority)


def test_the_mirror_pod_of_a_static_pod_is_created_unchanged(namespace: PodNamespace) -> None:
    mirror = pod("static", gpu_mem=256, annotations={"kubernetes.io/config.mirror": "x"})
    mirror["spec"]["nodeName"] = namespace.cluster.nodes[0].name
    groups = ("--as-group=system:nodes", "--as-group=system:authenticated")
    node = f"--as=system:node:{namespace.cluster.nodes[0].name}"
    create = ("-n", namespace.name, node, *groups, "create", "-o", "json", "-f", "-")
    spec = json.loads(namespace.cluster.kubectl(*create, stdin=json.dumps(mirror)))[
        "spec"
    ]  # the kubelet soon deletes it
    assert names.SLICE not in spec["containers"][0]["resources"]["limits"]
    assert "env" not in spec["containers"][0]


def test_a_plugin_writes_only_its_own_node(cluster: GpuCluster) -> None:
    own, other = (node.name for node in cluster.nodes)
    kubeconfig = yaml.safe_load(accounts.path(cluster.work, f"vgpu-deviceplugin-{own}").read_text())
    plugin = api.ClusterApi(cluster.within, kubeconfig["users"][0]["user"]["token"], cluster.api._authority)
    status_patch: Document = {"status": {"conflicts": []}}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
    plugin.patch(f"{names.GPUNODES_PATH}/{own}/status", status_patch)
    with pytest.raises(api.RequestRefused, match="its own node"):
        plugin.patch(f"{names.GPUNODES_PATH}/{other}/status", status_patch)
    with pytest.raises(api.RequestRefused, match="its own node"):
        plugin.request(
            "PUT",
            f"{lease}/{names.node_lease(NodeName(other))}",
            plugin.get(f"{lease}/{names.node_lease(NodeName(other))}"),
        )
    with pytest.raises(api.RequestRefused, match="forbidden"):
        plugin.patch(f"{names.GPUNODES_PATH}/{own}", {"spec": {"cards": []}})
    with pytest.raises(api.RequestRefused, match="forbidden"):
        plugin.patch(f"/api/v1/nodes/{own}", {})
    with pytest.raises(api.RequestRefused, match="forbidden"):
        plugin.get("/api/v1/secrets")
    plugin.close()


def test_gpunode_settings_are_validated_and_kubectl_prints_columns(cluster: GpuCluster) -> None:
    node = cluster.nodes[0]
    path = f"{names.GPUNODES_PATH}/{node.name}"
    with pytest.raises(api.RequestRefused, match='supported values: "shared", "exclusive"'):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[0].uuid, "mode": "mps"}]}})
    watermark = {"high": 70, "low": 70}
    with pytest.raises(api.RequestRefused, match="high must be above low"):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": node.cards[0].uuid, "watermark": watermark}]}})
    with pytest.raises(api.RequestRefused, match="Duplicate"):
        cluster.api.patch(path, {"spec": {"cards": [{"uuid": "GPU-1"}, {"uuid": "GPU-1"}]}})
    (header, row, *_) = cluster.kubectl("get", "gpunodes").splitlines()
    assert header.split() == [
        "NAME",
        "REGISTERED",
        "HEALTHY",
        "CORDONED",
        *("FREE-MEMORY", "FREE-COMPUTE", "MODELS", "CONFLICTS", "AGE"),
    ]
    assert row.split()[:10] == [node.name, "true", "4/4", "0", "320", "GiB", "4", "of", "4", "cards"]


def test_the_documented_change_of_one_card_keeps_the_others(cluster: GpuCluster) -> None:
    node = cluster.nodes[0]
    first, second = (card.uuid for card in node.cards[:2])

    def apply(uuid: str, **settings: object) -> None:
        document = {"apiVersion": "vgpu.io/v1alpha1", "kind": "GPUNode", "metadata": {"name": node.name}}
        document["spec"] = {"cards": [{"uuid": uuid, **settings}]}
        flags = ("--server-side", "--force-conflicts", f"--field-manager={uuid}")
        cluster.kubectl("apply", *flags, "-f", "-", stdin=json.dumps(document))

    def gpunode() -> Document:
        return cluster.api.get(f"{names.GPUNODES_PATH}/{node.name}")

    try:
        apply(first, cordoned=True)
        apply(second, mode="exclusive")
        apply("GPU-of-another-node")
        found = {card["uuid"]: card for card in gpunode()["spec"]["cards"]}
        assert (found[first]["cordoned"], found[second]["mode"]) == (True, "exclusive")
        wait.until(lambda: gpunode()["status"]["summary"]["cordoned"] == 1, "the column counts the card", 10)
        apply(first)
        found = {card["uuid"]: card for card in gpunode()["spec"]["cards"]}
        assert (found[first]["cordoned"], found[second]["mode"]) == (False, "exclusive")
        unknown = lambda: [  # noqa: E731
            condition["message"] for condition in gpunode()["status"]["conditions"]
            if (condition["type"], condition["status"]) == ("SettingsKnown", "False")
        ]  # fmt: skip
        assert "GPU-of-another-node" in wait.until(unknown, "the unknown UUID is reported", 10)[0]
    finally:
        cluster.api.patch(f"{names.GPUNODES_PATH}/{node.name}", {"spec": {"cards": []}})


def test_a_memory_percentage_becomes_mib_of_the_clusters_cards(namespace: PodNamespace) -> None:
    manifest = waiting("p")
    manifest["spec"]["containers"] = [container(limits={names.GPU_MEM_PERCENTAGE: "25"})]
    limits = namespace.create(manifest)["spec"]["containers"][0]["resources"]["limits"]
    size = namespace.cluster.api.get(names.GPUNODES_PATH)["items"][0]["status"]["cards"][0]["memoryMiB"]
    assert limits.keys() == {names.GPU_MEM, names.SLICE}
    part = slices.percent_of(size, 25, 256)
    assert part is not None
    assert (int(limits[names.SLICE]), int(limits[names.GPU_MEM])) == (part.slices, part.memory_mib)


def bundles(cluster: GpuCluster) -> set[bytes]:
    path = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/vgpu-webhook"
    found = [cluster.api.get(path.format(kind)) for kind in ("mutating", "validating")]
    return {
        base64.b64decode(w["clientConfig"].get("caBundle", ""))
        for configuration in found
        for w in configuration["webhooks"]
    }


def test_an_emptied_ca_secret_is_filled_without_a_restart(namespace: PodNamespace) -> None:
    cluster = namespace.cluster
    (before,) = bundles(cluster)
    cluster.api.patch(f"/api/v1/namespaces/{names.NAMESPACE}/secrets/vgpu-webhook-ca", {"data": None})
    namespace.until(lambda: len(bundles(cluster)) == 1 and bundles(cluster) != {before}, "another CA is trusted")

    def is_mutated() -> bool:
        created = cluster.api.request("POST", namespace.pods_path, pod("p", gpu_mem=256), query={"dryRun": "All"})
        return names.SLICE in created["spec"]["containers"][0]["resources"]["limits"]

    namespace.until(is_mutated, "the webhook answers with the new certificate")


@pytest.mark.parametrize("path", ["base", "overlays/cert-manager"])
def test_the_manifests_build(cluster: GpuCluster, path: str) -> None:
    assert "kind: MutatingWebhookConfiguration" in cluster.kubectl("kustomize", str(MANIFESTS / path))


def test_the_api_server_accepts_the_workloads_of_the_manifests(cluster: GpuCluster) -> None:
    """Workloads, the Service, the PodDisruptionBudgets and the NetworkPolicies: here the parts run as processes."""
    kinds = ("deployment", "daemonset", "service", "poddisruptionbudget", "networkpolicy")
    built = cluster.kubectl("kustomize", str(MANIFESTS / "base"))
    wanted = [d for d in yaml.safe_load_all(built) if d["kind"].lower() in kinds]
    assert len(wanted) == 10
    for document in wanted:
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(document))


def test_a_limit_range_with_default_cores_leaves_pods_without_a_gpu_alone(namespace: PodNamespace) -> None:
    default = {"type": "Container", "default": {names.GPU_CORES: "30"}, "defaultRequest": {names.GPU_CORES: "30"}}
    limit_range = {"metadata": {"name": "cores"}, "spec": {"limits": [default]}}
    namespace.cluster.api.create(f"{namespace.path}/limitranges", limit_range)

    wanted = [pod("plain"), pod("share", gpu_mem=256), pod("whole", gpu=1)]
    plain, share, whole = (namespace.cluster.api.create(namespace.pods_path, manifest) for manifest in wanted)
    limits = [pod["spec"]["containers"][0]["resources"].get("limits", {}) for pod in (plain, share, whole)]
    assert [limit.get(names.GPU_CORES) for limit in limits] == [None, "30", None]
    assert [pod["spec"]["schedulerName"] for pod in (plain, share)] == ["default-scheduler", names.SCHEDULER]


def test_kubectl_prints_a_warning_about_an_amount_that_is_most_likely_in_gib(namespace: PodNamespace) -> None:
    command = ("create", "-n", namespace.name, "--dry-run=server", "-f", "-")
    assert "for 4 GiB write 4096" in namespace.cluster.kubectl(*command, stdin=json.dumps(pod("tiny", gpu_mem=4)))
