"""The Helm chart: the objects of the kustomizations, with values that are checked."""

import difflib
import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import manifests
from tests.manifests import chart, components
from tests.manifests.chart import CHART
from tests.manifests.components import overlay
from tests.manifests.objects import MANIFESTS
from vgpu.domain import names
from vgpu.domain.json_types import JsonObject

GOLDEN = Path(__file__).parent / "golden"
VALUES: dict[str, dict[str, Any]] = {
    "cert-manager": {"webhook": {"certificates": {"mode": "cert-manager"}}},
    "cluster-scheduler": {"scheduler": {"mode": "cluster"}},
    "without-toolkit": {"deviceplugin": {"toolkit": False}},
    "space": {"space": {"enabled": True}},
    "prometheus-operator": {
        "monitoring": {
            "runbookUrl": "https://example.invalid/vgpushare/docs/runbook.md",
            **{part: {"enabled": True} for part in ("podMonitors", "rules", "dashboards")},
        }
    },
}
KUSTOMIZE_EQUALS = {"namespace": {"create": True}, "crds": {"keep": False}}
CLAIM = {"name": "history", "persistentVolumeClaim": {"claimName": "vgpu-history"}}
SHARED = {"name": "history", "nfs": {"server": "192.0.2.10", "path": "/vgpu"}}
OF_EACH_POD = (
    {"name": "history", "emptyDir": {}},
    {"name": "history", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
    {"name": "prices", "persistentVolumeClaim": {"claimName": "vgpu-prices", "readOnly": True}},
)
HASHED = re.compile(r"vgpu-scheduler-config-[0-9a-z]{10}")
RANDOM = re.compile(
    r"(?<![\w.\"$-])(rand\w+|gen(?:CA|Cert|Signed|Self|Private)\w*|lookup|now|uuidv4|shuffle|getHostByName|htpasswd|bcrypt)\b"
)


def normalized(text: str) -> dict[chart.Key, JsonObject]:
    """The objects, with one name for the scheduler's configuration, whose hash follows from its content."""
    return chart.objects(HASHED.sub("vgpu-scheduler-config-HASH", text))


@pytest.mark.parametrize("chosen", list(components.combinations()), ids="+".join)
def test_the_chart_makes_the_objects_of_the_kustomization(chosen: tuple[str, ...], tmp_path: Path) -> None:
    """The base, and any components on it, with values that choose the same: a take-over leaves nothing behind."""
    values = {key: value for name in chosen for key, value in VALUES[name].items()}
    ours = chart.objects(chart.rendered(KUSTOMIZE_EQUALS | values))
    theirs = chart.objects(chart.kustomized(overlay(tmp_path / "overlay", chosen)))
    assert ours.keys() == theirs.keys()
    for key, found in theirs.items():
        assert ordered(ours[key]) == ordered(found), key


def ordered(document: JsonObject) -> JsonObject:
    """The object with lists in one order whose order means nothing: mounts, volumes and arguments."""
    pod = document.get("spec", {}).get("template", {}).get("spec", {}) if document["kind"] != "Certificate" else {}
    for container in pod.get("containers", ()):
        container["volumeMounts"] = sorted(container["volumeMounts"], key=lambda mount: str(mount["mountPath"]))
        container["args"] = sorted(container.get("args", ()))
    if pod:
        pod["volumes"] = sorted(pod["volumes"], key=lambda volume: str(volume["name"]))
    return document


def test_every_file_of_the_base_is_in_the_chart() -> None:
    """A new file of the base, with objects that the default values leave out or not, must be read by a template."""
    templates = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    listed = yaml.safe_load((MANIFESTS / "base" / "kustomization.yaml").read_text())["resources"]
    assert not [name for name in listed if f"base/{name}" not in templates]


def test_nothing_is_random_or_depends_on_the_cluster_or_the_clock() -> None:
    templates = {path.name: path.read_text() for path in (CHART / "templates").iterdir()}
    actions = {name: "".join(re.findall(r"\{\{-? [^/].*?\}\}", text)) for name, text in templates.items()}
    calls = {name: RANDOM.findall(text) for name, text in actions.items()}
    assert {name: found for name, found in calls.items() if found} == {}
    assert chart.rendered() == chart.rendered()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.values.yaml")), ids=lambda path: path.name.partition(".")[0])
def test_typical_values_render_as_they_did(path: Path) -> None:
    """What the values change in the objects, as a diff. After a wanted change delete the diff and run this twice."""
    changed = difference(chart.rendered(), chart.rendered(yaml.safe_load(path.read_text())))
    golden = path.with_name(path.name.replace(".values.yaml", ".diff"))
    if not golden.exists():
        golden.write_text(changed)
        pytest.fail(f"{golden} is written: look at it, and run the test again")
    assert changed == golden.read_text()


def difference(before: str, after: str) -> str:
    """What is other in two renderings: objects that come and go by their names, and lines of those that stay."""
    old, new = normalized(before), normalized(after)
    lines = [f"- {'/'.join(filter(None, key))}" for key in sorted(old.keys() - new.keys())]
    lines += [f"+ {'/'.join(filter(None, key))}" for key in sorted(new.keys() - old.keys())]
    for key in sorted(new):
        texts = [yaml.safe_dump(found.get(key), width=200).splitlines() for found in (old, new)]
        changed = list(difflib.unified_diff(texts[0] if key in old else [], texts[1], n=1, lineterm=""))[2:]
        lines += [f"= {'/'.join(filter(None, key))}", *changed] if changed else []
    return "".join(f"{line.rstrip()}\n" for line in lines)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"imge": {}}, "imge"),
        ({"image": {"tag": "a b"}}, "image/tag"),
        ({"image": {"digests": {"webhook": "latest"}}}, "image/digests/webhook"),
        ({"image": {"registry": "https://registry.example.com"}}, "image/registry"),
        ({"pullSecrets": [{"name": "credentials"}]}, "pullSecrets/0"),
        ({"labels": {"team": 1}}, "labels/team"),
        ({"podLabels": {"app.kubernetes.io/name": "mine"}}, "podLabels"),
        ({"serviceAccounts": {"webhook": {"create": "no"}}}, "serviceAccounts/webhook/create"),
        ({"scheduler": {"mode": "none"}}, "scheduler/mode"),
        ({"scheduler": {"mode": "cluster", "name": "vgpu-scheduler"}}, "nothing runs under the name vgpu-scheduler"),
        ({"scheduler": {"name": "default-scheduler"}}, "needs a name of its own"),
        ({"scheduler": {"mode": "cluster", "lease": "a/b/c"}}, "scheduler/lease"),
        ({"scheduler": {"mode": "cluster", "lease": "kube-scheduler"}}, "write NAMESPACE/NAME"),
        ({"scheduler": {"replicas": 0}}, "scheduler/replicas"),
        ({"webhook": {"replicas": 9999999999999}}, "webhook/replicas"),
        ({"extender": {"extraVolumes": [CLAIM]}}, "would be one for 2 replicas"),
        ({"scheduler": {"replicas": 3}, "extender": {"extraVolumes": [SHARED]}}, "would be one for 3 replicas"),
        ({"extender": {"extraVolumes": [{"name": "prices"}]}}, "extender/extraVolumes/0"),
        (
            {"extender": {"extraVolumeMounts": [{"name": "prices", "mountPath": "etc"}]}},
            "extraVolumeMounts/0/mountPath",
        ),
        ({"extender": {"nodeSelector": {"node-role.kubernetes.io/control-plane": True}}}, "extender/nodeSelector"),
        ({"scheduler": {"tolerations": [{"operator": "exists"}]}}, "scheduler/tolerations/0/operator"),
        ({"webhook": {"resources": {"limits": {"memory": "lots"}}}}, "webhook/resources/limits/memory"),
        ({"webhook": {"certificates": {"mode": "existing"}}}, "webhook/certificates/caBundle"),
        ({"webhook": {"topologySpreadConstraints": [{"maxSkew": 1}]}}, "webhook/topologySpreadConstraints/0"),
        ({"deviceplugin": {"extraArgs": ["slice-mib=512"]}}, "deviceplugin/extraArgs/0"),
        ({"space": {"enabled": "yes"}}, "space/enabled"),
        ({"space": {"enabled": True}, "deviceplugin": {"toolkit": False}}, "needs NVIDIA's container toolkit"),
        ({"networkPolicies": {"apiServer": ["192.0.2.10"]}}, "networkPolicies/apiServer/0"),
        ({"monitoring": {"interval": "soon"}}, "monitoring/interval"),
        ({"monitoring": {"runbookUrl": "docs/runbook.md"}}, "monitoring/runbookUrl"),
        (
            {"monitoring": {"podMonitors": {"enabled": True}, "serviceMonitors": {"enabled": True}}},
            "would scrape each pod twice",
        ),
        (
            {"scheduler": {"mode": "cluster"}, "monitoring": {"rules": {"enabled": True}}},
            "VgpuExtenderDown would fire for ever",
        ),
    ],
)
def test_a_bad_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    lines = chart.refused(values)
    assert any(named in line.replace(".", "/") for line in lines), lines


@pytest.mark.parametrize("version", ["v1.30.0+k3s1", "v1.36.3+rke2r1", "v1.36.3-gke.1001000", "v1.36.3-eks-1a2b3c4"])
def test_versions_of_distributions_are_accepted(version: str) -> None:
    """The range of the chart is about the version of Kubernetes, without what a distribution appends."""
    assert chart.rendered({}, "--kube-version", version)


def test_a_kubernetes_without_stable_admission_policies_is_refused() -> None:
    with pytest.raises(chart.ChartRefused, match="kubeVersion"):
        chart.rendered({}, "--kube-version", "v1.29.9+k3s1")


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "vgpu-scheduler"),
        ({"name": "gpus"}, "gpus"),
        ({"mode": "cluster"}, "default-scheduler"),
        ({"mode": "cluster", "name": "mine"}, "mine"),
    ],
)
def test_gpu_pods_get_the_name_of_the_scheduler_that_asks_the_extender(values: dict[str, str], name: str) -> None:
    """The webhook writes the name, the policy demands it, and a second kube-scheduler runs under it."""
    found = chart.objects(chart.rendered({"scheduler": values}))
    (webhook,) = found["Deployment", "vgpu-system", "vgpu-webhook"]["spec"]["template"]["spec"]["containers"]
    written = [arg.partition("=")[2] for arg in webhook["args"] if arg.startswith("--scheduler-name=")]
    assert (written or [names.SCHEDULER]) == [name]
    for policy in ("vgpu-pods", "vgpu-other-names"):
        variables = found["ValidatingAdmissionPolicy", "", policy]["spec"]["variables"]
        assert [variable["expression"] for variable in variables if variable["name"] == "scheduler"] == [f"'{name}'"]
    configs = [obj["data"] for (_, _, object_), obj in found.items() if object_.startswith("vgpu-scheduler-config-")]
    runs = [re.findall(r"schedulerName: (\S+)", config["scheduler-config.yaml"]) for config in configs]
    assert runs == ([] if values.get("mode") == "cluster" else [[name]])


def test_warnings_about_other_tools_names_can_be_left_out() -> None:
    left_out = (
        chart.objects(chart.rendered()).keys()
        - chart.objects(chart.rendered({"admissionWarnings": {"enabled": False}})).keys()
    )
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert left_out == {(kind, "", "vgpu-other-names") for kind in kinds}


@pytest.mark.parametrize(("mode", "workload"), [("second", "vgpu-scheduler"), ("cluster", "vgpu-extender")])
def test_the_admin_rest_and_the_metrics_are_found_beside_any_scheduler(mode: str, workload: str) -> None:
    """The Service and the monitor select the extender's pods by a label of their own, and no pod of another part."""
    found = chart.objects(
        chart.rendered({"scheduler": {"mode": mode}, "monitoring": {"podMonitors": {"enabled": True}}})
    )
    selector = found["Service", "vgpu-system", "vgpu-admin"]["spec"]["selector"]
    labels = {
        name: obj["spec"]["template"]["metadata"]["labels"]
        for (kind, _, name), obj in found.items()
        if kind in ("Deployment", "DaemonSet")
    }
    assert [name for name, own in labels.items() if selector.items() <= own.items()] == [workload]
    assert not {"app.kubernetes.io/name"} & selector.keys()
    monitor = found["PodMonitor", "vgpu-system", "vgpu-scheduler"]
    assert monitor["spec"]["selector"]["matchLabels"] == selector


@pytest.mark.parametrize(
    ("mode", "key"),
    [
        ("second", ("Deployment", "vgpu-system", "vgpu-scheduler")),
        ("cluster", ("DaemonSet", "vgpu-system", "vgpu-extender")),
    ],
)
def test_files_and_a_claim_reach_the_extender_beside_any_scheduler(mode: str, key: chart.Key) -> None:
    """A volume with the name of one of ours takes its place; kube-scheduler's container gets nothing."""
    prices = {"name": "prices", "configMap": {"name": "vgpu-prices"}}
    mount = {"name": "prices", "mountPath": "/etc/vgpu-prices", "readOnly": True}
    extender = {"extraVolumes": [prices, CLAIM], "extraVolumeMounts": [mount]}
    found = chart.objects(chart.rendered({"scheduler": {"mode": mode, "replicas": 1}, "extender": extender}))
    pod = found[key]["spec"]["template"]["spec"]
    assert [volume for volume in pod["volumes"] if volume["name"] in ("prices", "history")] == [prices, CLAIM]
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]
    mounts = {container["name"]: container["volumeMounts"] for container in pod["containers"]}
    assert mounts.pop("extender")[1:] == [mount]
    assert mount not in [other for others in mounts.values() for other in others]


@pytest.mark.parametrize("volume", OF_EACH_POD, ids="-".join)
def test_volumes_of_each_pod_and_other_claims_are_for_any_number_of_replicas(volume: JsonObject) -> None:
    found = chart.objects(chart.rendered({"extender": {"extraVolumes": [volume]}}))
    assert volume in found["Deployment", "vgpu-system", "vgpu-scheduler"]["spec"]["template"]["spec"]["volumes"]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_drain_may_evict_a_pod_of_any_number_of_replicas(replicas: int) -> None:
    """With minAvailable: 1 one replica, as the history in a claim needs, would keep its node from being drained."""
    found = chart.objects(chart.rendered({part: {"replicas": replicas} for part in ("scheduler", "webhook")}))
    budgets = {name: obj["spec"] for (kind, _, name), obj in found.items() if kind == "PodDisruptionBudget"}
    assert set(budgets) == {"vgpu-scheduler", "vgpu-webhook"}
    for name, budget in budgets.items():
        assert found["Deployment", "vgpu-system", name]["spec"]["replicas"] == replicas
        assert (budget.get("minAvailable"), budget["maxUnavailable"]) == (None, 1)


@pytest.mark.parametrize("url", ["", "https://wiki.example.com/vgpu/runbook/"])
def test_alerts_link_to_where_operators_read_the_runbook(url: str) -> None:
    monitoring = {"rules": {"enabled": True}, "runbookUrl": url}
    found = chart.objects(chart.rendered({"monitoring": monitoring})).values()
    rules = [document for document in found if document["kind"] == "PrometheusRule"]
    alerts = [
        rule for document in rules for group in document["spec"]["groups"] for rule in group["rules"] if "alert" in rule
    ]
    links = [alert["annotations"].get("runbook_url") for alert in alerts]
    assert links == [f"{url}#{alert['alert'].lower()}" if url else None for alert in alerts]
    assert len(links) > 20


def test_every_value_has_a_schema_and_a_comment() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(paths(yaml.safe_load((CHART / "values.yaml").read_text()), schema)) == set()


def paths(values: JsonObject, schema: JsonObject, prefix: str = "") -> list[str]:
    """Values that the schema does not name."""
    missing = []
    for name, value in values.items():
        known = schema.get("properties", {}).get(name)
        if known is None and "additionalProperties" in schema and not schema["additionalProperties"]:
            missing.append(f"{prefix}{name}")
        elif isinstance(value, dict) and known is not None and "properties" in known:
            missing += paths(value, known, f"{prefix}{name}.")
    return missing


def test_helm_finds_nothing_to_complain_about() -> None:
    done = subprocess.run([chart.program(), "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


def test_the_chart_names_the_images_of_the_build() -> None:
    digest = f"sha256:{hashlib.sha256(b'').hexdigest()}"
    image = {"registry": "registry.example.com/gpu/", "tag": "1.2.3", "digests": {"webhook": digest}}
    text = chart.rendered({"image": image, "labels": {"team": "platform"}})
    labels = [found["metadata"]["labels"] for found in chart.objects(text).values()]
    assert {(label["app.kubernetes.io/version"], label["team"]) for label in labels} == {("1.2.3", "platform")}
    assert set(re.findall(r"image: (\S*vgpushare\S*)", text)) == {
        "registry.example.com/gpu/vgpushare-extender:1.2.3",
        f"registry.example.com/gpu/vgpushare-webhook@{digest}",
        "registry.example.com/gpu/vgpushare-deviceplugin:1.2.3",
    }
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == manifests.UNSTAMPED


def test_another_namespace_and_other_accounts_are_named_everywhere() -> None:
    names = {
        part: {"create": False, "name": f"my-{part}"} for part in ("extender", "scheduler", "webhook", "deviceplugin")
    }
    text = chart.rendered({"serviceAccounts": names}, namespace="gpu-sharing")
    assert "vgpu-system" not in text
    found = chart.objects(text)
    subjects = {subject["name"] for obj in found.values() for subject in obj.get("subjects", ())}
    assert subjects == {"my-extender", "my-scheduler", "my-webhook", "my-deviceplugin", "vgpu-admin"}
    assert {name for kind, _, name in found if kind == "ServiceAccount"} == {"vgpu-admin"}
    policy = json.dumps([obj for (kind, _, _), obj in found.items() if kind == "ValidatingAdmissionPolicy"])
    assert set(re.findall(r"serviceaccount:([\w-]+:[\w-]+)", policy)) == {
        "gpu-sharing:my-extender",
        "gpu-sharing:my-deviceplugin",
    }
    workloads = [obj for (kind, _, _), obj in found.items() if kind in ("Deployment", "DaemonSet")]
    assert {obj["spec"]["template"]["spec"]["serviceAccountName"] for obj in workloads} == {
        "my-extender", "my-webhook", "my-deviceplugin",
    }  # fmt: skip
    assert text.count("--namespace=gpu-sharing") == 3
