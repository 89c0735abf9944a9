"""What only admission asks about a pod's JSON."""

from typing import Final

from vgpu.domain.asks import manifest
from vgpu.domain.json_types import Json

MIRROR: Final = "kubernetes.io/config.mirror"
NODES_GROUP: Final = "system:nodes"


def is_mirror(pod: Json, groups: list[str]) -> bool:
    """Whether a kubelet creates the API object of a static pod, which runs already: refusing it has no effect.

    The annotation alone is not enough, because users can write it too.
    """
    return MIRROR in manifest.annotations(pod) and NODES_GROUP in groups
