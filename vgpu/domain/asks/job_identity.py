"""Which job a container is of: pods whose ranks may wait for each other in collectives. Pure.

A job is one gang that the extender placed, as far as one controller made its pods. The extender says the gang, with the
Binding and under the rules of the assignment; the API server says the namespace and the controller. So no annotation or
label of a user's joins another job, and no pod of another namespace can. Users of one namespace are not kept apart:
whoever may create pods there may name any controller of that namespace.
"""

import hashlib
from typing import Final

from vgpu.domain.asks.gang import Gang
from vgpu.domain.identifiers import Namespace

FINGERPRINT_SIZE: Final = 16  # bytes


def placed_gang(gang: Gang) -> str:
    """Return what the extender writes of the gang that it has placed a pod with; gangs that differ have other texts."""
    return f"{gang.source}/{gang.name}"


def fingerprint(namespace: Namespace, placed: str, controller_uid: str) -> bytes | None:
    """Return 16 bytes that name a pod's job in files, None where the pod is of no job.

    Args:
        namespace: of the pod.
        placed: what `placed_gang` wrote of it; empty where it was bound by itself.
        controller_uid: of the object that made the pod; empty where nothing did.
    """
    if not (placed and controller_uid):
        return None
    text = f"{namespace}\x00{controller_uid}\x00{placed}"
    return hashlib.sha256(text.encode()).digest()[:FINGERPRINT_SIZE]
