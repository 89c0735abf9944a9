"""The rules of manifests/monitoring: the plain files, which people edit, and what is made of them."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from extender import metrics as extender_metrics
from tests.contract.repository import ROOT
from vgpu.adapters.metrics import Metric, MetricKind
from vgpu.node.usage import metrics as node_metrics
from webhook import metrics as webhook_metrics

FOLDER = ROOT / "manifests" / "monitoring"
SOURCES = {"vgpu-alerts": FOLDER / "alerts.yaml", "vgpu-recording": FOLDER / "recording.yaml"}
OBJECTS = FOLDER / "prometheus-rules.yaml"
_HEAD = """# For the Prometheus operator: alerts.yaml and recording.yaml as objects.
# Made by `python -m tests.contract.monitoring`.
"""
_NAME = re.compile(r"\bvgpu_\w+|\b[a-z_]+:vgpu_\w+:\w+|\bvgpu:\w+:\w+")
_PARTS = {MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count")}

Rule = dict[str, Any]


def rules() -> Iterator[Rule]:
    """Every rule of the plain files."""
    for source in SOURCES.values():
        for group in yaml.safe_load(source.read_text())["groups"]:
            yield from group["rules"]


def alerts() -> list[Rule]:
    """The alerts, in the order of the file."""
    return [rule for rule in rules() if "alert" in rule]


def objects() -> str:
    """The text of prometheus-rules.yaml."""
    made = [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": name, "namespace": "vgpu-system"},
            "spec": yaml.safe_load(source.read_text()),
        }
        for name, source in SOURCES.items()
    ]
    return _HEAD + yaml.safe_dump_all(made, sort_keys=False, width=120)


def served() -> dict[str, Metric]:
    """The metrics of the code, by the name of each of their series."""
    catalogues = (extender_metrics.CATALOGUE, node_metrics.CATALOGUE, webhook_metrics.CATALOGUE)
    return {
        f"{metric.name}{part}": metric
        for catalogue in catalogues
        for metric in catalogue
        for part in _PARTS.get(metric.kind, ("",))
    }


def recorded() -> set[str]:
    """The series that recording rules make."""
    return {rule["record"] for rule in rules() if "record" in rule}


def names_in(expression: str) -> set[str]:
    """The series of vgpushare that an expression names."""
    return set(_NAME.findall(expression))
