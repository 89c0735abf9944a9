"""Types of what identifies cards, nodes, pods and containers: text at run time, told apart by the type checker.

A value gets its type where it enters the program: in the parser of an object or a file, in an adapter, in a parameter
of a request or a command line. Code behind that passes it on, and converts nothing.
"""

from typing import Final, NewType

CardUuid = NewType("CardUuid", str)
"""NVML's UUID of a card, `GPU-...`: the card's identity everywhere."""

UNNAMED_CARD: Final = CardUuid("")
"""Where no card is meant, or its identity does not matter."""

NodeName = NewType("NodeName", str)
"""The name of a node, and of its GPUNode."""

NO_NODE: Final = NodeName("")
"""Where an object is on no node, or no node is meant."""

PodUid = NewType("PodUid", str)
"""The API server's UID of a pod, `metadata.uid`: a recreated pod has the same name and another UID."""

NO_POD: Final = PodUid("")
"""Where no pod is meant."""

KubeletPodUid = NewType("KubeletPodUid", str)
"""The UID by which the kubelet knows a pod, as in the names of cgroups.

Of a static pod it is a hash of the pod's configuration, and the API server gives the mirror pod another `PodUid`. All
other pods have one UID: `vgpu.node.containers.pods` has the two functions that make the one type from the other.
"""

NOT_IN_A_POD: Final = KubeletPodUid("")
"""Of a process outside of all pods."""

Namespace = NewType("Namespace", str)
"""The name of a namespace."""

NO_NAMESPACE: Final = Namespace("")
"""Of an object of the cluster, and where no namespace is meant."""

DEFAULT_NAMESPACE: Final = Namespace("default")
"""Of an object whose manifest names none."""

ContainerName = NewType("ContainerName", str)
"""The name of a container, or of an init container; it is unique within a pod only. A runtime's ID is plain text."""

NO_CONTAINER: Final = ContainerName("")
"""Where no container is meant, or it is not known."""
