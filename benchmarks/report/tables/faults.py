"""Faults of the parts: how long until all is normal, and until the next pod."""

from typing import Final

from benchmarks.record.result import ResultRow, slug
from benchmarks.recovery.goals import GOALS as RECOVERY_GOALS
from benchmarks.report.tables.report_table import DETAILS, OPERATIONS, Line, ReportTable, goal, median, number, worst

_FAULTS: Final = {
    "webhook does not run for 3 to 15 s": "webhook does not run",
    "webhook killed": "kill -9 webhook",
    "webhook hangs": "SIGSTOP webhook",
    "connection between webhook and API server lost without notice": "half-open: webhook",
    "extender killed": "kill -9 extender",
    "extender hangs": "SIGSTOP extender",
    "connections of extender and scheduler lost without notice": "half-open: extender and scheduler",
    "kube-scheduler killed": "kill -9 scheduler",
    "kube-scheduler hangs": "SIGSTOP scheduler",
    "device plugin killed": "kill -9 plugin",
    "device plugin hangs": "SIGSTOP plugin",
    "connection of the device plugin lost without notice": "half-open: plugin",
    "a part without network for 3 to 15 s": "part cut off",
    "arbiter killed": "kill -9 arbiter",
    "arbiter hangs": "SIGSTOP arbiter",
    "kubelet killed": "kill -9 kubelet",
    "API server killed": "kill -9 api server",
    "API server hangs": "SIGSTOP api server",
    "API server answers 429 to our parts": "429 to our parts",
    "etcd hangs": "etcd stopped",
    "network delayed by 50 ms to 1 s": "slow network",
    "state directory full": "state disk full",
    "card lost, and back": "card lost",
    "driver reloaded": "driver reloaded",
    "NVML answers errors": "NVML errors",
}


def failed_pods(row: ResultRow) -> str:
    """Return how many pods the kubelet failed, over all faults of the kind."""
    return f"{row.details['failed']} in {row.details['count']}"


OUTAGES: Final = ReportTable(
    "outages",
    OPERATIONS,
    "fault",
    {"normal again after, median, s": median(1), "worst, s": worst(1), "pods failed, in faults": failed_pods},
    tuple(Line(label, (slug("outage", fault),)) for label, fault in _FAULTS.items()),
)


def most_load(row: ResultRow) -> str:
    """Return the most that the machine's load was in a round."""
    return number(row.details["load"], 1)


RECOVERY: Final = ReportTable(
    "recovery",
    DETAILS,
    "fault",
    {
        "objective": goal,
        "until the next pod, median, s": median(1),
        "worst, s": worst(1),
        "pods failed, in faults": failed_pods,
        "load of the machine, most": most_load,
    },
    tuple(Line(fault, (slug("recovery", fault),)) for fault in RECOVERY_GOALS),
)
