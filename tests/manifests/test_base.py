"""The manifests agree with the code; tests/e2e shows that an API server accepts them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import CliApp

from deviceplugin.settings import PluginSettings
from extender import serving, shutdown
from extender.admin.routes import card_routes, simulate_routes
from extender.admin.security import access
from extender.lead import binding_outcome
from extender.settings import ExtenderSettings
from extender.state.fields import refused
from extender.verbs import bind
from images import parts
from release import manifests
from vgpu.domain import names
from vgpu.domain.asks import aliases, idle, other_names
from vgpu.domain.formats import container_paths
from vgpu.domain.json_types import JsonObject
from vgpu.node.cards.inventory import InventoryState
from vgpu.node.cards.watermarks import Watermark
from vgpu.node.gpunode import card_reports, gpunode_status, refusal_reporter
from vgpu.node.processes import finding_reports, sightings
from vgpu.node.usage import kernel_reports
from webhook.settings import WebhookSettings

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
CLEANUP = ROOT / "manifests" / "cleanup" / "cleanup.yaml"
PROBES = ("livenessProbe", "readinessProbe")


def documents() -> list[JsonObject]:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [document for name in listed for document in yaml.safe_load_all((BASE / name).read_text())]


ALL = documents()


def one(kind: str, name: str) -> JsonObject:
    (found,) = [d for d in ALL if (d["kind"], d["metadata"]["name"]) == (kind, name)]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for document in ALL:
        for text in _strings(document, "expression"):
            yield f"{document['kind']} {document['metadata']['name']}", text


def _strings(value: Any, key: str) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get(key), str):
            yield value[key]
        for child in value.values():
            yield from _strings(child, key)
    elif isinstance(value, list):
        for child in value:
            yield from _strings(child, key)


def containers() -> Iterator[tuple[str, JsonObject]]:
    for document in ALL:
        if document["kind"] in ("Deployment", "DaemonSet"):
            for container in document["spec"]["template"]["spec"]["containers"]:
                yield document["metadata"]["name"], container


def test_every_file_is_in_the_kustomization() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    generated = [name for generator in listed["configMapGenerator"] for name in generator["files"]]
    assert {*listed["resources"], *generated, "kustomization.yaml"} == {path.name for path in BASE.iterdir()}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expression_with_names_of_other_projects_has_all_of_them(where: str, expression: str) -> None:
    found = set(re.findall(r"'((?:aliyun\.com|nvidia\.com|volcano\.sh)/[^']+)'", expression))
    found -= other_names.WARNED_RESOURCES.keys()
    assert found in (set(), aliases.MARKER_NAMES), where


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_expressions_use_only_names_of_the_code(where: str, expression: str) -> None:
    ours = set(re.findall(rf"'({re.escape(names.DOMAIN)}/[^']*)'", expression))
    known = {
        f"{names.DOMAIN}/",
        *names.USER_RESOURCES,
        *names.KUBELET_RESOURCES,
        *names.USER_ANNOTATIONS,
        *names.LIVE_ANNOTATIONS,
        *names.STATE_ANNOTATIONS,
        names.MAX_PRIORITY_LABEL,
        names.SHARED_SPACE_GROUP_LABEL,
    }
    assert ours <= known, where


def test_every_user_annotation_is_immutable_once_a_pod_is_bound() -> None:
    changes = "".join(_strings(one("ValidatingAdmissionPolicy", "vgpu-pod-changes"), "expression"))
    labels = {names.MAX_PRIORITY_LABEL, names.SHARED_SPACE_GROUP_LABEL}
    named = set(re.findall(r"'(vgpu\.io/[^']+)'", changes)) - labels
    assert named == {*names.USER_ANNOTATIONS, *names.STATE_ANNOTATIONS}


def test_the_policy_about_namespaces_and_the_code_know_the_same_idle_settings() -> None:
    (after, action) = one("ValidatingAdmissionPolicy", "vgpu-idle-defaults")["spec"]["validations"]
    pattern = re.search(r"matches\(\s*'(.*?)'\)", after["expression"])[1]  # type: ignore[index]
    for text in ("never", "30m", "1h30m", "90s", "720h", "1h1m1s"):
        assert re.search(pattern, text)
        assert idle.read({names.IDLE_AFTER: text})[1] == []
    for text in ("", "30", "m", "1.5h", "30m ", "30s1m", "Never"):
        assert not re.search(pattern, text)
        assert idle.read({names.IDLE_AFTER: text})[1]
    assert set(re.findall(r"'([a-z-]+)'", action["expression"].partition(" in ")[2])) == set(idle.IdleAction)


def test_the_policies_and_the_webhook_refuse_volumes_at_the_same_paths() -> None:
    texts = [text for where, text in expressions() if "volumeMounts" in text and "vgpu-visible" not in where]
    (pattern,) = {re.search(r"matches\(\s*'(.*?)'\)", text)[1] for text in texts}  # type: ignore[index]
    assert len(texts) == 2
    for reserved in container_paths.RESERVED:
        for path in (reserved, f"{reserved}/x", reserved.replace("/run", "/var/run")):
            cleaned = "/".join(part for part in path.split("/") if part not in ("", "."))
            assert re.search(pattern, cleaned), path
            assert container_paths.is_reserved(path)
    for path in ("etc", "run", "run/vgpu2", "usr/local/bin", "etc/ld.so.preload.d", "data/..x"):
        assert not re.search(pattern, path), path
        assert not container_paths.is_reserved(f"/{path}")
    assert re.search(pattern, "a/../etc")


def test_namespaces_are_exempted_by_the_label_of_the_code() -> None:
    selector = one("ValidatingAdmissionPolicyBinding", "vgpu-visible-devices")["spec"]["matchResources"]
    expressions = selector["namespaceSelector"]["matchExpressions"]
    assert [expression["key"] for expression in expressions] == [
        "kubernetes.io/metadata.name",
        names.VISIBLE_DEVICES_LABEL,
    ]


def test_every_policy_is_bound_and_fails_closed_except_for_the_one_that_only_warns() -> None:
    policies = {d["metadata"]["name"]: d["spec"] for d in ALL if d["kind"] == "ValidatingAdmissionPolicy"}
    bound = {d["spec"]["policyName"]: d["spec"] for d in ALL if d["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert policies.keys() == bound.keys()
    does = {name: (spec["failurePolicy"], bound[name]["validationActions"]) for name, spec in policies.items()}
    assert does.pop("vgpu-other-names") == ("Ignore", ["Warn"])
    assert set(map(str, does.values())) == {"('Fail', ['Deny'])"}


def test_the_policy_that_warns_says_what_the_code_says() -> None:
    validations = one("ValidatingAdmissionPolicy", "vgpu-other-names")["spec"]["validations"]
    resources = {f"resources.limits[{name}]": why for name, why in other_names.WARNED_RESOURCES.items()}
    annotations = {f"metadata.annotations[{name}]": why for name, why in other_names.WARNED_ANNOTATIONS.items()}
    said = [f"{field} {why}" for field, why in (resources | annotations).items()]
    assert [validation["message"] for validation in validations] == said
    named = [re.search(r"'([^']+)'", validation["expression"])[1] for validation in validations]  # type: ignore[index]
    assert named == [*other_names.WARNED_RESOURCES, *other_names.WARNED_ANNOTATIONS]


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_the_webhooks_fail_open(kind: str) -> None:
    settings = CliApp.run(WebhookSettings, cli_args=[])
    (webhook,) = one(kind, settings.configuration)["webhooks"]
    assert (webhook["failurePolicy"], webhook["sideEffects"], webhook["timeoutSeconds"]) == ("Ignore", "None", 3)
    (excluded,) = webhook["namespaceSelector"]["matchExpressions"]
    assert excluded["values"] == ["kube-system", names.NAMESPACE]
    assert webhook["clientConfig"]["service"]["name"] == settings.service
    assert webhook["clientConfig"]["service"]["namespace"] == settings.namespace
    assert webhook["matchConditions"]


def test_the_scheduler_calls_the_extender_for_all_our_resources() -> None:
    config = yaml.safe_load((BASE / "scheduler-config.yaml").read_text())
    (extender,) = config["extenders"]
    settings = CliApp.run(ExtenderSettings, cli_args=[])
    assert extender["urlPrefix"] == f"http://{settings.listen}"
    assert float(extender["httpTimeout"].removesuffix("s")) > bind.GET_TIMEOUT_S + binding_outcome.POST_TIMEOUT_S
    assert (extender["ignorable"], extender["nodeCacheCapable"]) == (False, True)
    assert extender["weight"] >= 100
    managed = {
        managed_resource["name"]: managed_resource["ignoredByScheduler"]
        for managed_resource in extender["managedResources"]
    }
    assert managed == dict.fromkeys((*names.USER_RESOURCES, *names.KUBELET_RESOURCES), True)  # docs/adr/0011
    assert [profile["schedulerName"] for profile in config["profiles"]] == [names.SCHEDULER]


def test_the_schedulers_probes_ask_what_every_supported_version_serves() -> None:
    """The kube-scheduler of Kubernetes 1.30 has neither /livez nor /readyz; tests/e2e asks it."""
    (scheduler,) = [
        container for owner, container in containers() if (owner, container["name"]) == ("vgpu-scheduler", "scheduler")
    ]
    assert {scheduler[probe]["httpGet"]["path"] for probe in PROBES} == {"/healthz"}


def test_the_extender_has_the_time_to_learn_the_outcome_of_its_last_bindings() -> None:
    grace = one("Deployment", "vgpu-scheduler")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    in_flight = binding_outcome.POST_TIMEOUT_S + 2 * bind.GET_TIMEOUT_S
    assert grace > serving.GRACE_S + in_flight + shutdown.DRAIN_S + 3


def test_the_images_are_those_that_are_built() -> None:
    ours = {
        f"docker.io/library/{container['image']}"
        for _, container in containers()
        if container["image"].startswith("vgpushare-")
    }
    assert ours == {part.reference(manifests.UNSTAMPED) for part in parts.PARTS}


def test_cleanup_removes_the_state_directory_of_the_host() -> None:
    (daemonset,) = [d for d in yaml.safe_load_all(CLEANUP.read_text()) if d["kind"] == "DaemonSet"]
    spec = daemonset["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    settings = CliApp.run(PluginSettings, cli_args=["--node-name=n", *container["args"]])
    assert (settings.remove_state, settings.state_dir) == (True, Path("/host/vgpu"))
    mount, volume = container["volumeMounts"][0], spec["volumes"][0]
    assert mount["name"] == volume["name"]
    assert (mount["mountPath"], volume["hostPath"]["path"]) == ("/host", "/var/lib")
    assert container["image"] == next(other["image"] for _, other in containers() if other["name"] == "deviceplugin")


def test_no_container_of_ours_needs_a_shell() -> None:
    """The images have none."""
    commands = [
        container[probe]["exec"]["command"]
        for _, container in containers()
        for probe in PROBES
        if "exec" in container[probe]
    ]
    assert len(commands) == 4
    assert {command[0] for command in commands} == {"python"}


@pytest.mark.parametrize(("owner", "container"), list(containers()))
def test_only_the_device_plugin_has_privileges(owner: str, container: JsonObject) -> None:
    security = container["securityContext"]
    if owner == "vgpu-deviceplugin":
        assert security == {"privileged": True}
        return
    assert security == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]


def test_the_device_plugin_alone_sees_the_processes_of_its_host() -> None:
    """In a pid namespace of its own NVML names no other process."""
    specs = {d["metadata"]["name"]: d["spec"]["template"]["spec"] for d in ALL if "template" in d.get("spec", {})}
    assert [name for name, spec in specs.items() if spec.get("hostPID")] == ["vgpu-deviceplugin"]


@pytest.mark.parametrize(("owner", "container"), list(containers()))
def test_every_container_has_both_probes(owner: str, container: JsonObject) -> None:
    assert set(PROBES) <= container.keys(), owner


@pytest.mark.parametrize("name", ["vgpu-scheduler", "vgpu-webhook"])
def test_a_lost_node_leaves_a_replica_and_is_left_soon(name: str) -> None:
    spec = one("Deployment", name)["spec"]
    assert spec["replicas"] == 2
    leaves = {
        toleration["key"]: toleration.get("tolerationSeconds") for toleration in spec["template"]["spec"]["tolerations"]
    }
    assert leaves["node.kubernetes.io/unreachable"] == leaves["node.kubernetes.io/not-ready"] == 10
    assert one("PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1


def test_the_extender_follows_the_lease_of_the_scheduler_beside_it() -> None:
    config = yaml.safe_load((BASE / "scheduler-config.yaml").read_text())["leaderElection"]
    assert config["leaderElect"] is True
    (extender,) = [
        container for owner, container in containers() if owner == "vgpu-scheduler" and container["name"] == "extender"
    ]
    assert f"--scheduler-lease={config['resourceName']}" in extender["args"]
    assert config["resourceNamespace"] == names.NAMESPACE


def test_no_generated_configmap_has_the_name_of_an_object_in_a_rule() -> None:
    """Kustomize adds the hash of a generated ConfigMap's name to equal `resourceNames` too, of whatever resource."""
    generated = yaml.safe_load((BASE / "kustomization.yaml").read_text())["configMapGenerator"]
    named = {name for _, rule in rules() for name in rule.get("resourceNames", ())}
    assert named.isdisjoint(generator["name"] for generator in generated)


def test_the_daemonset_never_runs_two_plugins_on_a_node() -> None:
    strategy = one("DaemonSet", "vgpu-deviceplugin")["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["maxSurge"] == 0


def rules() -> Iterator[tuple[str, JsonObject]]:
    roles = [d for d in ALL if d["kind"] in ("Role", "ClusterRole")]
    for role in roles:
        for rule in role["rules"]:
            yield f"{role['kind']} {role['metadata']['name']}", rule


@pytest.mark.parametrize(("role", "rule"), list(rules()))
def test_no_role_has_wildcards_and_only_the_extender_may_delete_pods(role: str, rule: JsonObject) -> None:
    granted = {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}
    assert not granted & {"*", "deletecollection", "escalate", "impersonate"}, role
    if "delete" in rule["verbs"]:  # it preempts, as kube-scheduler does
        assert (role, rule["resources"]) == ("ClusterRole vgpu-extender", ["pods"])
    if "secrets" in rule["resources"]:
        assert set(rule["verbs"]) == {"get", "update"}  # who may create Secrets can get any account's token
        assert rule["resourceNames"] == [CliApp.run(WebhookSettings, cli_args=[]).secret]
        assert role.startswith("Role ")


def test_the_webhooks_secret_is_installed_empty() -> None:
    secret = one("Secret", CliApp.run(WebhookSettings, cli_args=[]).secret)
    assert (secret["type"], secret.keys() & {"data", "stringData"}) == ("Opaque", set())


@pytest.mark.parametrize("resource", ["pods/binding", "pods/eviction", "events"])
def test_only_the_extender_binds_evicts_and_writes_events(resource: str) -> None:
    """A token of the device plugin is on every GPU node."""
    granted = {role for role, rule in rules() if resource in rule["resources"]}
    assert granted == {"ClusterRole vgpu-extender"}


def test_bindings_with_an_assignment_or_a_gang_come_from_the_extender_only() -> None:
    (expression,) = _strings(one("ValidatingAdmissionPolicy", "vgpu-bindings"), "expression")
    assert all(f"'{name}'" in expression for name in names.STATE_ANNOTATIONS)
    assert f"'system:serviceaccount:{names.NAMESPACE}:vgpu-extender'" in expression


def test_the_gpunode_schema_has_the_codes_fields_and_printer_columns() -> None:
    crd = one("CustomResourceDefinition", f"gpunodes.{names.DOMAIN}")
    (version,) = crd["spec"]["versions"]
    assert f"{crd['spec']['group']}/{version['name']}" == names.API_VERSION
    assert version["subresources"] == {"status": {}}
    schema = version["schema"]["openAPIV3Schema"]
    for column in version["additionalPrinterColumns"]:
        if column["jsonPath"].startswith(".metadata"):
            continue
        at = schema
        for key in column["jsonPath"].removeprefix(".").split("."):
            at = at["properties"][key]


def fields(schema: JsonObject, path: str = "GPUNode") -> Iterator[tuple[str, JsonObject]]:
    """Every field of a schema, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from fields(child, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")


def test_kubectl_explain_has_a_text_for_every_field() -> None:
    (version,) = one("CustomResourceDefinition", f"gpunodes.{names.DOMAIN}")["spec"]["versions"]
    listed = list(fields(version["schema"]["openAPIV3Schema"]))
    assert len(listed) > 40
    assert [path for path, schema in listed if not schema.get("description")] == []


def test_the_schema_takes_what_the_plugin_writes() -> None:
    (version,) = one("CustomResourceDefinition", f"gpunodes.{names.DOMAIN}")["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert gpunode_status.status_of(InventoryState(), 256, "0", []).keys() | {"conditions"} == status.keys()
    assert status["refusals"]["maxItems"] == refused.MAX_REFUSALS
    of_processes = 2 * sightings.MAX_FINDINGS + kernel_reports.MAX_REPORTED
    reported = refusal_reporter.MAX_REPORTED + of_processes + card_reports.MAX_REPORTED
    assert reported == refused.MAX_REFUSALS
    made = gpunode_status.conditions_of(InventoryState(), [], is_registered=True)
    assert set(re.findall(r"(\w+): ", status["conditions"]["description"])) == {
        finding_reports.NO_UNINVITED,
        finding_reports.LIMITS_ENFORCED,
        gpunode_status.ARBITER_RUNS,
        gpunode_status.SPACE_JOINED,
        *(admitted.kind for admitted in made),
    }


def test_the_schema_refuses_watermarks_that_the_plugin_refuses() -> None:
    (version,) = one("CustomResourceDefinition", f"gpunodes.{names.DOMAIN}")["spec"]["versions"]
    cards = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["cards"]
    schema = cards["items"]["properties"]["watermark"]
    assert schema["required"] == ["high", "low"]
    assert [rule["rule"] for rule in schema["x-kubernetes-validations"]] == ["self.high > self.low"]
    low, high = schema["properties"]["low"], schema["properties"]["high"]
    assert Watermark(high["minimum"], low["minimum"])
    assert Watermark(high["maximum"], low["maximum"])


def test_network_policies_let_in_only_the_ports_that_the_pods_have() -> None:
    policies = [d for d in ALL if d["kind"] == "NetworkPolicy"]
    deployments = {d["metadata"]["name"]: d["spec"] for d in ALL if d["kind"] in ("Deployment", "DaemonSet")}
    assert {policy["metadata"]["name"] for policy in policies} == deployments.keys()
    for policy in policies:
        name, spec = policy["metadata"]["name"], policy["spec"]
        assert spec["podSelector"] == deployments[name]["selector"]
        assert spec["policyTypes"] == ["Ingress"]
        open_ports = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
        containers = deployments[name]["template"]["spec"]["containers"]
        assert open_ports == [port["containerPort"] for container in containers for port in container.get("ports", ())]


def test_the_admin_rest_has_the_names_that_its_clients_use() -> None:
    service = one("Service", names.ADMIN_SERVICE)
    assert [port["port"] for port in service["spec"]["ports"]] == [names.ADMIN_PORT]
    assert service["metadata"]["namespace"] == one("ServiceAccount", names.ADMIN_ACCOUNT)["metadata"]["namespace"]
    (rule,) = one("Role", "vgpu-admin-client")["rules"]
    assert rule["resourceNames"] == [f"https:{names.ADMIN_SERVICE}:{names.ADMIN_PORT}"]
    rules = one("ClusterRole", names.ADMIN_ACCOUNT)["rules"]
    granted = {
        (verb, group, resource)
        for r in rules
        for verb in r["verbs"]
        for group in r["apiGroups"]
        for resource in r["resources"]
    }
    asked = (access.READ_PODS, access.READ_CARDS, card_routes.PATCH_NODE, simulate_routes.SIMULATE)
    assert {(request.verb, request.group, request.resource) for request in asked} <= granted


def test_metrics_are_scraped_where_they_are_served() -> None:
    for document in ALL:
        annotations = document.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})
        if port := annotations.get("prometheus.io/port"):
            containers = document["spec"]["template"]["spec"]["containers"]
            assert f"--metrics-listen=[::]:{port}" in [
                flag for container in containers for flag in container.get("args", ())
            ]
