"""What each fault may cost."""

from typing import Final, NamedTuple


class RecoveryGoal(NamedTuple):
    """What a fault may cost: seconds until the next Binding, and pods that a kubelet fails; None: no goal."""

    seconds: float | None
    failed: int | None = 0

    @property
    def words(self) -> str:
        """The goal as a table shows it; empty where there is none."""
        seconds = "" if self.seconds is None else f"at most {self.seconds:g} s"
        pods = "" if self.failed is None else "no pod fails" if self.failed == 0 else f"at most {self.failed} pods fail"
        return "; ".join(filter(None, (seconds, pods)))


# Code on which the time of a recovery depends. What the admin REST, the page and the history answer does not count.
SOURCES: Final = (
    *(f"extender/{module}.py" for module in ("__main__", "app", "assembly", "serving", "shutdown")),
    *(f"extender/{folder}" for folder in ("effects", "gangs", "index", "lead", "protocol", "state", "verbs", "watch")),
    "extender/admin/exchange",
    "webhook",
    "deviceplugin",
    "vgpu/node",
    "vgpu/adapters",
)

GOALS: Final = {
    "extender killed": RecoveryGoal(30.0),
    "extender stopped": RecoveryGoal(3.0),
    "leader of two replicas killed": RecoveryGoal(None),
    "leader of two replicas stopped": RecoveryGoal(None),
    "webhook killed": RecoveryGoal(None),
    "device plugin killed": RecoveryGoal(None),
    "device plugin's container killed": RecoveryGoal(None, None),
    "device plugin stopped": RecoveryGoal(None),
    "node rebooted": RecoveryGoal(None, None),
}
