"""What kube-scheduler wrote into a pod's condition `PodScheduled` when it found no node, and which of it is news.

    0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 CardInUse: whole cards are asked for and none is
    empty. preemption: 0/4 nodes are available: ...

A part is known where the objects of nodes, pods and cards give the same answer: taints, labels, amounts of processors,
memory and our resources, and the reasons that the extender gave. The others are about what nothing here looks at:
volumes, ports, affinity to pods, other resources (`Insufficient rdma/hca`).
"""

import re
from typing import Final

from vgpu.domain import names
from vgpu.domain.cards.reasons import Reason

MAX_LENGTH: Final = 1_024
_HEAD: Final = re.compile(r"^\d+/\d+ nodes are available: ")
_PREEMPTION: Final = re.compile(r"\.?\s*(?:no new claims to deallocate,\s*)?[Pp]reemption: .*$", re.DOTALL)
_BETWEEN: Final = re.compile(r", (?=\d+ )")  # a reason may hold a comma
_COUNT: Final = re.compile(r"^\d+ ")
_REASONS: Final = tuple(f"{reason}: " for reason in Reason)
_COMPARED: Final = (*names.USER_RESOURCES, *names.KUBELET_RESOURCES, "cpu", "memory")
_AMOUNTS: Final = frozenset(f"Insufficient {name}" for name in _COMPARED)
_RULES: Final = re.compile(
    r"node\(s\) had (?:\w+ )*taint|node\(s\) didn't match (?:Pod's|pod's|the requested) node "
    r"|node\(s\) were unschedul"
)


def refusal(message: str) -> str:
    """Return the message without what kube-scheduler says of preemption."""
    return _PREEMPTION.sub("", message[:MAX_LENGTH]).strip().removesuffix(".")


def quoted(message: str) -> list[str]:
    """Return the message as the first part of a sentence; nothing where there is none."""
    said = refusal(message)
    return [f"kube-scheduler: {said}"] if said else []


def unknown(message: str, *, rules_known: bool = True) -> list[str]:
    """Return the parts of a message that no object here explains, such as a conflict of volumes.

    `rules_known` says whether the pod's rules for nodes could be read; otherwise taints and labels are unknown too.
    """
    said = _HEAD.sub("", refusal(message))
    return [part for part in _BETWEEN.split(said) if part and not _is_known(_COUNT.sub("", part), rules_known)]


def _is_known(part: str, rules_known: bool) -> bool:
    return part.startswith(_REASONS) or part in _AMOUNTS or (rules_known and _RULES.match(part) is not None)
