"""Which job a container is of: pods whose ranks may wait for each other in collectives. Pure.

A job is one gang that the extender placed, as far as one object made its pods: their controller, or what made the
controllers of all of them, as a JobSet does. The extender says both, with the Binding and under the rules of the
assignment; the API server says the namespace. So no annotation or label of a user's joins another job, no pod of
another namespace can, and a change of a pod's owner references after its Binding says nothing. Users of one namespace
are not kept apart: whoever may create pods there may name any controller of that namespace.
"""

import hashlib
from typing import Final

from vgpu.domain.asks.gang import Gang
from vgpu.domain.identifiers import Namespace

FINGERPRINT_SIZE: Final = 16  # bytes


def placed_gang(gang: Gang, owner_uid: str = "") -> str:
    """Return what the extender writes of the gang that it has placed a pod with; gangs that differ have other texts.

    `owner_uid` is that of the object that made the job; empty where nothing did. None of the parts has a slash.
    """
    return "/".join(filter(None, (gang.source, gang.name, owner_uid)))


def fingerprint(namespace: Namespace, placed: str, controller_uid: str) -> bytes | None:
    """Return 16 bytes that name a pod's job in files, None where the pod is of no job.

    Args:
        namespace: of the pod.
        placed: what `placed_gang` wrote of it; empty where it was bound by itself.
        controller_uid: of the object that made the pod, which counts where `placed` names no owner, as extenders before
            ADR 190 wrote it; empty where nothing made the pod.
    """
    source, _, rest = placed.partition("/")
    name, _, owner_uid = rest.partition("/")
    made_by = owner_uid or controller_uid
    if not (placed and made_by):
        return None
    text = f"{namespace}\x00{made_by}\x00{source}/{name}"
    return hashlib.sha256(text.encode()).digest()[:FINGERPRINT_SIZE]
