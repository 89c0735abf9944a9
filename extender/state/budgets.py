"""PodDisruptionBudgets: how many more disruptions each allows, and which pods it protects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.state.objects import WatchedPod
from vgpu.domain.identifiers import Namespace
from vgpu.domain.json_types import Json

PATH: Final = "/apis/policy/v1/poddisruptionbudgets"


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget. `disrupted` are the names of pods whose disruption is counted already."""

    namespace: Namespace
    name: str
    allowed: int
    selector: Json
    disrupted: frozenset[str]

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    def protects(self, pod: WatchedPod) -> bool:
        """Whether an eviction of the pod uses the budget. An empty selector protects no pod, as in kube-scheduler."""
        labels = pod.scheduling.labels
        if pod.namespace != self.namespace or not labels or pod.name in self.disrupted:
            return False
        return bool(self.selector) and selects(self.selector, labels)


class Budgets:
    """Every PodDisruptionBudget: the handler of their watch."""

    def __init__(self) -> None:
        self._budgets: dict[str, Budget] = {}

    @property
    def allowed(self) -> dict[str, int]:
        """How many more disruptions each budget allows."""
        return {key: budget.allowed for key, budget in self._budgets.items()}

    def of(self, pod: WatchedPod) -> tuple[str, ...]:
        """Return the budgets that an eviction of a pod would use."""
        return tuple(key for key, budget in self._budgets.items() if budget.protects(pod))

    def replace(self, objects: list[Budget], version: str) -> None:  # noqa: ARG002 - the reflector's protocol
        """Take a full list."""
        self._budgets = {obj.key: obj for obj in objects}

    def upsert(self, obj: Budget) -> None:
        """Take a budget that is new or changed."""
        self._budgets[obj.key] = obj

    def delete(self, obj: Budget) -> None:
        """Take a budget's deletion."""
        self._budgets.pop(obj.key, None)


def decode(raw: bytes) -> Budget:
    """Read a PodDisruptionBudget; a missing status allows no disruption."""
    obj: Json = msgspec.json.decode(raw)
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    return Budget(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        allowed=status.get("disruptionsAllowed") or 0,
        selector=_selector(spec.get("selector") or {}),
        disrupted=frozenset(status.get("disruptedPods") or ()),
    )


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels; an operator that is not known selects nothing."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(match_expression, labels) for match_expression in selector.get("matchExpressions") or ())


def _selector(selector: Json) -> Json:
    """Return a selector without its empty parts, so that an empty selector is empty."""
    return {key: value for key, value in selector.items() if value}


def _meets(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key"), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return labels.get(key or "") in values
        case "NotIn":
            return labels.get(key or "") not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
