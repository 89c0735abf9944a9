"""The component for the Prometheus operator: a PodMonitor for each part that has a port for its metrics."""

import yaml

from tests.manifests.test_base import ALL, BASE

MONITORS = BASE.parent / "components" / "prometheus-operator" / "pod-monitors.yaml"


def test_each_part_with_a_port_for_metrics_has_a_pod_monitor() -> None:
    monitors = {monitor["metadata"]["name"]: monitor["spec"] for monitor in yaml.safe_load_all(MONITORS.read_text())}
    served = {
        document["metadata"]["name"]: document["spec"]["template"]["metadata"]["labels"]
        for document in ALL
        if document["kind"] in ("Deployment", "DaemonSet")
        for container in document["spec"]["template"]["spec"]["containers"]
        if any(port["name"] == "metrics" for port in container.get("ports", ()))
    }
    selected = {
        name: [part for part, labels in served.items() if spec["selector"]["matchLabels"].items() <= labels.items()]
        for name, spec in monitors.items()
    }
    assert selected == {name: [name] for name in served}
    assert {
        pod_metrics_endpoint["port"]
        for spec in monitors.values()
        for pod_metrics_endpoint in spec["podMetricsEndpoints"]
    } == {"metrics"}
