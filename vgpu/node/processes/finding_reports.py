"""How findings are told: entries of `status.refusals` of a GPUNode, and its conditions. Pure."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from vgpu.domain import names
from vgpu.domain.identifiers import CardUuid
from vgpu.domain.json_types import JsonObject
from vgpu.node.containers.bound_pod import BoundPod
from vgpu.node.gpunode.gpunode_status import NodeCondition
from vgpu.node.gpunode.pod_report import pod_report
from vgpu.node.processes.findings import ProcessFinding

NO_UNINVITED: Final = "NoUninvitedProcesses"
LIMITS_ENFORCED: Final = "LimitsEnforced"
_MAX_MESSAGE: Final = 900
_ASK_FOR_A_SHARE: Final = (
    f"Ask for {names.GPU_MEM} or {names.GPU}; set NVIDIA_VISIBLE_DEVICES neither in the manifest nor in a ConfigMap or "
    "the image, and mount no device files"
)
_USE_THE_LIMITER: Final = (
    "Link the program dynamically, start it by the container's own loader, and cover neither /etc/ld.so.preload nor "
    "/run/vgpu nor /usr/local/vgpu"
)

Index = Callable[[CardUuid], str]  # from a card's UUID to its index, for people


def reports(findings: Iterable[ProcessFinding], index: Index, *, evicts: Collection[str]) -> list[JsonObject]:
    """Return an entry for each reason and each pod that the API has; `evicts` are the reasons that evict pods."""
    grouped: dict[tuple[str, str], list[ProcessFinding]] = {}
    for finding in findings:
        if finding.pod is not None:
            grouped.setdefault((finding.pod.uid, finding.kind.reason), []).append(finding)
    return [
        _report(pod, reason, found, index, evicts=reason in evicts)
        for (_, reason), found in grouped.items()
        if (pod := found[0].pod)
    ]


def no_uninvited(
    findings: Collection[ProcessFinding], more: int, index: Index, problem: tuple[str, str] | None
) -> NodeCondition:
    """Return the condition about uses without a share; `problem` is why they cannot be seen: reason and message."""
    if not findings and problem is None:
        return NodeCondition(NO_UNINVITED, True, "NoneFound", "every process on a card belongs to a share of it")
    return _condition(NO_UNINVITED, findings, more, index, problem)


def limits_enforced(
    findings: Collection[ProcessFinding], more: int, index: Index, problem: tuple[str, str] | None
) -> NodeCondition:
    """Return the condition about shares without their limits."""
    if not findings and problem is None:
        message = "every process of a share has loaded its limiter, and NVML counts no more memory than limits allow"
        return NodeCondition(LIMITS_ENFORCED, True, "Enforced", message)
    return _condition(LIMITS_ENFORCED, findings, more, index, problem)


def _condition(
    kind: str, findings: Collection[ProcessFinding], more: int, index: Index, problem: tuple[str, str] | None
) -> NodeCondition:
    if not findings and problem is not None:
        return NodeCondition(kind, None, *problem)
    texts = [f"card {index(finding.gpu)}: {finding.subject}{_explained(finding)}" for finding in findings]
    tail = [f"and {more} more"] if more else []
    return NodeCondition(kind, False, next(iter(findings)).kind.reason, "; ".join([*texts, *tail]))


def _explained(finding: ProcessFinding) -> str:
    return f": {finding.detail}" if finding.detail else ""


def _report(pod: BoundPod, reason: str, found: list[ProcessFinding], index: Index, *, evicts: bool) -> JsonObject:
    is_uninvited = reason == names.CARD_USED_WITHOUT_SHARE
    texts = "; ".join(
        f"card {index(finding.gpu)} ({finding.gpu}) is used by {finding.subject}"
        + (" without a share of it" if is_uninvited else _explained(finding))
        for finding in found
    )
    advice = _ASK_FOR_A_SHARE if is_uninvited else _USE_THE_LIMITER
    message = f"{texts[: _MAX_MESSAGE - len(advice)]}. {advice}"
    evict = evicts and pod.has_controller and any(finding.is_certain for finding in found)
    return pod_report(pod, reason, message, evict=evict)
