"""`python -m tests.contract.metrics_page`: writes docs/metrics.md from the metrics that the code defines."""

from collections.abc import Iterable

from extender import metrics as extender_metrics
from tests.contract.repository import ROOT
from vgpu.adapters.metrics import Metric
from vgpu.node.usage import dcgm_metrics
from vgpu.node.usage import metrics as node_metrics
from webhook import metrics as webhook_metrics

PAGE = ROOT / "docs" / "metrics.md"
HEAD = """# Metrics

Each part serves its metrics at `/metrics` of a port of its own, without a token and without the API server, in
Prometheus' text format and in OpenMetrics. A NetworkPolicy lets the namespace `monitoring` connect. Beside the
cluster's own scheduler the extender serves them on the node's loopback, until monitors are wanted. This page is
written by `python -m tests.contract.metrics_page`.

| part | setting | port in the manifests |
|---|---|---|
| extender | `--metrics-listen` | 9874 |
| device plugin | `--metrics-listen` | 9872 |
| webhook | `--metrics-listen` | 9873 |
"""


DCGM = """`--dcgm-names` of the device plugin adds these. They have the units of NVIDIA's dcgm-exporter, and each
container's own value.
"""


def page() -> str:
    """The text of the page."""
    sections = [
        HEAD,
        _section("Device plugin", node_metrics.CATALOGUE),
        DCGM,
        _table(dcgm_metrics.CATALOGUE),
        _section("Extender", extender_metrics.CATALOGUE),
        _section("Webhook", webhook_metrics.CATALOGUE),
    ]
    return "\n".join(sections)


def _section(title: str, metrics: Iterable[Metric]) -> str:
    return f"## {title}\n\n{_table(metrics)}"


def _table(metrics: Iterable[Metric]) -> str:
    rows = [f"| `{metric.name}` | {metric.kind} | {metric.help} | {', '.join(metric.labels)} |" for metric in metrics]
    return "\n".join(["| metric | kind | meaning | labels |", "|---|---|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
