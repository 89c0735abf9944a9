"""The extender beside the cluster's own kube-scheduler: the component, the chart's values for it, and what is left."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_settings import CliApp

from cluster.programs import binaries
from extender.settings import ExtenderSettings
from tests.manifests import chart
from tests.manifests.objects import MANIFESTS
from tests.manifests.test_base import BASE, one
from vgpu.domain import loopback, names
from vgpu.domain.json_types import JsonObject

COMPONENT = MANIFESTS / "components" / "cluster-scheduler"
DAEMON_SET = "DaemonSet", "vgpu-system", "vgpu-extender"
KUBE_SCHEDULER = "kube-system/kube-scheduler"
PLATFORMS = MANIFESTS.parent / "docs" / "platforms.md"
KUBECONFIG = """
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none}}]
current-context: none
"""
ELECTING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
"""


def template() -> JsonObject:
    found: JsonObject = yaml.safe_load((COMPONENT / "extender.yaml").read_text())["spec"]["template"]
    return found


def extender(found: JsonObject) -> JsonObject:
    (container,) = [each for each in found["spec"]["containers"] if each["name"] == "extender"]
    return dict(container)


def settings(container: JsonObject) -> ExtenderSettings:
    return CliApp.run(ExtenderSettings, cli_args=container["args"])


def rendered(values: dict[str, Any] | None = None, **scheduler: str) -> dict[chart.Key, JsonObject]:
    return chart.objects(chart.rendered({"scheduler": {"mode": "cluster", **scheduler}, **(values or {})}))


def test_it_is_the_extender_of_the_second_scheduler_in_all_but_its_place() -> None:
    beside, second = extender(template()), extender(one("Deployment", "vgpu-scheduler")["spec"]["template"])
    for found in (beside, second):
        found["args"] = [arg for arg in found["args"] if not re.match("--(scheduler-lease|metrics-listen)=", arg)]
        del found["ports"]
    assert beside == second
    ours, theirs = template()["spec"], one("Deployment", "vgpu-scheduler")["spec"]["template"]["spec"]
    for key in ("serviceAccountName", "securityContext", "priorityClassName", "terminationGracePeriodSeconds"):
        assert ours[key] == theirs[key]
    history = [volume for volume in theirs["volumes"] if volume["name"] == "history"]
    assert ours["volumes"] == history


def test_on_the_network_of_the_node_only_what_reviews_its_callers_is_open() -> None:
    """NetworkPolicies do not apply there. Every port is claimed, so that two such pods get two nodes."""
    found = template()
    assert found["spec"]["hostNetwork"] is True
    parsed = settings(extender(found))
    assert loopback.is_loopback(parsed.host)
    metrics = ExtenderSettings.model_validate({"listen": parsed.metrics_listen})
    assert loopback.is_loopback(metrics.host)
    assert parsed.admin_auth == "kubernetes"
    assert parsed.admin_address is not None
    claimed = {port["hostPort"] for port in extender(found)["ports"]}
    assert claimed == {parsed.port, parsed.admin_address[1], metrics.port}
    assert not [key for key in found["metadata"].get("annotations", {}) if key.startswith("prometheus.io")]


def test_kube_scheduler_asks_where_the_verbs_are() -> None:
    (asked,) = yaml.safe_load((BASE / "scheduler-config.yaml").read_text())["extenders"]
    assert asked["urlPrefix"] == f"http://{settings(extender(template())).listen}"


def test_the_account_reads_the_followed_lease_and_no_other() -> None:
    namespace, name = settings(extender(template())).scheduler_lease_at
    role, binding = yaml.safe_load_all((COMPONENT / "rbac.yaml").read_text())
    assert (role["metadata"]["namespace"], binding["metadata"]["namespace"]) == (namespace, namespace)
    (rule,) = role["rules"]
    assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["leases"], [name], ["get", "list", "watch"])
    assert [subject["name"] for subject in binding["subjects"]] == [template()["spec"]["serviceAccountName"]]


def test_nothing_of_the_second_scheduler_is_left() -> None:
    text = chart.kustomized(MANIFESTS / "overlays" / COMPONENT.name)
    assert not re.findall(r"vgpu-scheduler", text)
    (webhook,) = chart.objects(text)["Deployment", "vgpu-system", "vgpu-webhook"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert "--scheduler-name=default-scheduler" in webhook["args"]


@pytest.mark.parametrize(
    ("lease", "followed", "roles"),
    [
        (KUBE_SCHEDULER, [KUBE_SCHEDULER], [("kube-system", "kube-scheduler")]),
        ("platform-system/kube-scheduler", ["platform-system/kube-scheduler"],
         [("platform-system", "kube-scheduler")]),
        (f"{names.NAMESPACE}/mine", [f"{names.NAMESPACE}/mine"], []),
        ("", [], []),
    ],
)  # fmt: skip
def test_the_followed_lease_is_a_value(lease: str, followed: list[str], roles: list[tuple[str, str]]) -> None:
    """In the extender's own namespace its Role has every Lease; without leader election there is none to follow."""
    found = rendered(lease=lease)
    args = extender(found[DAEMON_SET]["spec"]["template"])["args"]
    assert [arg.partition("=")[2] for arg in args if arg.startswith("--scheduler-lease=")] == followed
    assert [
        (namespace, role["rules"][0]["resourceNames"][0])
        for (kind, namespace, name), role in found.items()
        if (kind, name) == ("Role", "vgpu-extender") and namespace != names.NAMESPACE
    ] == roles


def test_the_values_for_k3s_choose_its_nodes_and_wait_for_no_lease() -> None:
    """docs/platforms.md: one server with SQLite has no leader election, and the label of its node has a value."""
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", PLATFORMS.read_text(), re.MULTILINE | re.DOTALL)
    (values,) = [yaml.safe_load(text) for text in blocks if "lease:" in text]
    found = chart.objects(chart.rendered(values, "--kube-version", "v1.36.3+k3s1"))
    pod = found[DAEMON_SET]["spec"]["template"]
    assert pod["spec"]["nodeSelector"] == {"node-role.kubernetes.io/control-plane": "true"}
    assert settings(extender(pod)).scheduler_lease == ""


@pytest.mark.parametrize(("arguments", "elects"), [([], True), (["--leader-elect=false"], False)])
def test_an_argument_overrules_leader_election_in_the_file(arguments: list[str], elects: bool, tmp_path: Path) -> None:
    """docs/platforms.md: k3s passes this argument. kube-scheduler writes what it would run with, and ends."""
    if not binaries.is_built():
        pytest.skip("needs kube-scheduler: python -m cluster.programs.binaries builds it")
    written = tmp_path / "written"
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    (tmp_path / "config").write_text(ELECTING + f"clientConnection: {{kubeconfig: {tmp_path}/kubeconfig}}")
    options = [f"--config={tmp_path}/config", f"--write-config-to={written}", "--secure-port=0", *arguments]
    subprocess.run([str(binaries.ensure() / "kube-scheduler"), *options], check=True, timeout=60)
    assert yaml.safe_load(written.read_text())["leaderElection"]["leaderElect"] is elects


def test_another_namespace_and_another_account_are_named_everywhere() -> None:
    values = {"scheduler": {"mode": "cluster"}, "serviceAccounts": {"extender": {"create": False, "name": "mine"}}}
    text = chart.rendered(values, namespace="gpu-sharing")
    assert "vgpu-system" not in text
    found = chart.objects(text)
    pod = found["DaemonSet", "gpu-sharing", "vgpu-extender"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "mine"
    assert "--namespace=gpu-sharing" in extender({"spec": pod})["args"]
    (subject,) = found["RoleBinding", "kube-system", "vgpu-extender"]["subjects"]
    assert (subject["name"], subject["namespace"]) == ("mine", "gpu-sharing")


def test_the_values_of_the_extender_are_those_of_the_daemonset() -> None:
    values = {
        "extender": {
            "nodeSelector": {"node-role.kubernetes.io/control-plane": None, "pool": "control"},
            "tolerations": [{"operator": "Exists"}],
            "podAnnotations": {"team": "platform"},
            "resources": {"limits": {"memory": "5Gi"}},
            "extraArgs": ["--history-url=postgresql://vgpu@database/vgpu"],
            "env": [{"name": "PGPASSWORD", "value": "x"}],
        }
    }
    found = rendered(values)[DAEMON_SET]["spec"]["template"]
    assert found["spec"]["nodeSelector"] == {"pool": "control"}
    assert found["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert found["metadata"]["annotations"] == {"team": "platform"}
    container = extender(found)
    assert container["resources"]["limits"] == {"memory": "5Gi"}
    assert settings(container).history_url == "postgresql://vgpu@database/vgpu"
    assert container["env"][-1] == {"name": "PGPASSWORD", "value": "x"}


@pytest.mark.parametrize("kind", ["podMonitors", "serviceMonitors"])
def test_a_prometheus_that_is_wanted_reaches_the_metrics(kind: str) -> None:
    found = rendered({"monitoring": {kind: {"enabled": True}}})
    assert settings(extender(found[DAEMON_SET]["spec"]["template"])).metrics_listen == "[::]:9874"


def test_a_prometheus_of_your_own_reaches_the_metrics_where_extra_arguments_open_them() -> None:
    values = {"extender": {"extraArgs": ["--metrics-listen=[::]:9999"]}, "monitoring": {"rules": {"enabled": True}}}
    assert settings(extender(rendered(values)[DAEMON_SET]["spec"]["template"])).metrics_listen == "[::]:9999"


def test_the_documents_print_the_configuration_of_the_second_scheduler() -> None:
    """README.md and Helm's notes: the one step that is left."""
    config = yaml.safe_load((BASE / "scheduler-config.yaml").read_text())
    wanted = {key: config[key] for key in ("percentageOfNodesToScore", "extenders")}
    readme = re.findall(r"^ *```yaml\n(.*?)^ *```", (MANIFESTS / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (written,) = [yaml.safe_load(text) for text in readme if "extenders:" in text]
    assert {key: written[key] for key in wanted} == wanted
    assert written["leaderElection"] == {"leaderElect": True}
    command = [
        str(chart.program()),
        "install",
        "vgpushare",
        str(chart.CHART),
        "--dry-run=client",
        "--namespace=vgpu-system",
    ]
    done = subprocess.run([*command, "--set=scheduler.mode=cluster"], capture_output=True, text=True, check=True)
    printed = done.stdout.partition("\nNOTES:")[2]
    assert yaml.safe_load("".join(re.findall(r"^  (?!kubectl)(.*\n)", printed, re.MULTILINE))) == wanted
