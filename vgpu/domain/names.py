"""Every name that other programs use too: resources, annotations, environment variables, API paths.

All of them contain one domain. To install under another domain, change `DOMAIN` here and in `manifests/`.
"""

from typing import Final

from vgpu.domain.identifiers import NO_NODE, Namespace, NodeName

DOMAIN: Final = "vgpu.io"

GPU_MEM: Final = f"{DOMAIN}/gpu-mem"  # MiB, the container's total over its GPUs
GPU_MEM_PERCENTAGE: Final = f"{DOMAIN}/gpu-mem-percentage"  # percent of each card's memory
GPU_CORES: Final = f"{DOMAIN}/gpu-cores"  # percent of one GPU's time, the container's total
GPU: Final = f"{DOMAIN}/gpu"  # number of GPUs; alone: whole cards
USER_RESOURCES: Final = (GPU_MEM, GPU_MEM_PERCENTAGE, GPU_CORES, GPU)

SLICE: Final = f"{DOMAIN}/slice"  # memory slices: what the kubelet counts for shares
CARD: Final = f"{DOMAIN}/card"  # whole cards: what the kubelet counts for them
KUBELET_RESOURCES: Final = (SLICE, CARD)

NODE_POLICY: Final = f"{DOMAIN}/node-policy"
GPU_POLICY: Final = f"{DOMAIN}/gpu-policy"
RACK_POLICY: Final = f"{DOMAIN}/rack-policy"
COMPUTE_POLICY: Final = f"{DOMAIN}/compute-policy"
MEMORY_POLICY: Final = f"{DOMAIN}/memory-policy"
PRIORITY: Final = f"{DOMAIN}/priority"
USE_GPU_MODEL: Final = f"{DOMAIN}/use-gpu-model"
AVOID_GPU_MODEL: Final = f"{DOMAIN}/avoid-gpu-model"
USE_GPU_UUID: Final = f"{DOMAIN}/use-gpu-uuid"
AVOID_GPU_UUID: Final = f"{DOMAIN}/avoid-gpu-uuid"
GANG: Final = f"{DOMAIN}/gang"  # name of the pods of a namespace that start together or not at all
GANG_SIZE: Final = f"{DOMAIN}/gang-size"  # how many pods these are
GANG_CARDS: Final = f"{DOMAIN}/gang-cards"  # whether two of these pods may be on one card
GPU_AFFINITY: Final = f"{DOMAIN}/gpu-affinity"  # labels of pods on whose cards a pod must be
GPU_ANTI_AFFINITY: Final = f"{DOMAIN}/gpu-anti-affinity"
PREFERRED_GPU_AFFINITY: Final = f"{DOMAIN}/preferred-gpu-affinity"
PREFERRED_GPU_ANTI_AFFINITY: Final = f"{DOMAIN}/preferred-gpu-anti-affinity"
SPACE_GROUP: Final = f"{DOMAIN}/space-group"  # name of the containers that run at the same moment on a card
SM_PERCENTAGE: Final = f"{DOMAIN}/sm-percentage"  # of a card's multiprocessors, the most for a container of a group
USER_ANNOTATIONS: Final = (
    NODE_POLICY,
    GPU_POLICY,
    RACK_POLICY,
    COMPUTE_POLICY,
    MEMORY_POLICY,
    PRIORITY,
    USE_GPU_MODEL,
    AVOID_GPU_MODEL,
    USE_GPU_UUID,
    AVOID_GPU_UUID,
    GANG,
    GANG_SIZE,
    GANG_CARDS,
    GPU_AFFINITY,
    GPU_ANTI_AFFINITY,
    PREFERRED_GPU_AFFINITY,
    PREFERRED_GPU_ANTI_AFFINITY,
    SPACE_GROUP,
    SM_PERCENTAGE,
)

RACK: Final = f"{DOMAIN}/rack"  # label of a node: the rack, or another group of nodes with a fast network

IDLE_AFTER: Final = f"{DOMAIN}/idle-after"
IDLE_ACTION: Final = f"{DOMAIN}/idle-action"
LIVE_ANNOTATIONS: Final = (IDLE_AFTER, IDLE_ACTION)  # may change while the pod runs; also defaults on a namespace

# Other projects' ways to name a group of pods.
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"  # of coscheduling, in kubernetes-sigs/scheduler-plugins
COSCHEDULING_GROUPS_PATH: Final = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
SCHEDULING_GROUP: Final = "schedulingGroup"  # a field of a pod's spec since Kubernetes 1.36
KUBERNETES_GROUPS_PATH: Final = "/apis/scheduling.k8s.io/v1alpha2/podgroups"

ASSIGNMENT: Final = f"{DOMAIN}/assignment"  # written once, with the Binding
PLACED_GANG: Final = f"{DOMAIN}/placed-gang"  # likewise: the gang that the extender placed the pod with
STATE_ANNOTATIONS: Final = (ASSIGNMENT, PLACED_GANG)

AS_WRITTEN: Final = f"{DOMAIN}/as-written"  # what the webhook has translated, by container; decides nothing

SYNTHETIC: Final = f"{DOMAIN}/synthetic"  # label of pods: their GPU time is a load for tests, and is no use

# Labels of a namespace, which its users cannot change.
MAX_PRIORITY_LABEL: Final = f"{DOMAIN}/max-priority"
SHARED_SPACE_GROUP_LABEL: Final = f"{DOMAIN}/shared-space-group"
VISIBLE_DEVICES_LABEL: Final = f"{DOMAIN}/visible-devices"

# Reasons of reports about what a pod's processes do, and of the Events about the pod.
CARD_USED_WITHOUT_SHARE: Final = "CardUsedWithoutShare"
CARD_UNHEALTHY: Final = "CardUnhealthy"  # a card that the pod holds
LIMITER_NOT_LOADED: Final = "LimiterNotLoaded"
LIMITER_FILES_COVERED: Final = "LimiterFilesCovered"
MEMORY_BEYOND_LIMIT: Final = "MemoryBeyondLimit"
REGION_BELOW_USE: Final = "RegionBelowUse"
LONG_KERNELS: Final = "LongKernels"
SPACE_NOT_JOINED: Final = "SpaceNotJoined"
SPACE_NOT_READY: Final = "SpaceNotReady"
SPACE_SERVER_FAULTED: Final = "SpaceServerFaulted"
ENDLESS_KERNEL: Final = "EndlessKernel"
WITHOUT_LIMITS: Final = frozenset({LIMITER_NOT_LOADED, LIMITER_FILES_COVERED, MEMORY_BEYOND_LIMIT, REGION_BELOW_USE})

IDLE_CONDITION: Final = f"{DOMAIN}/Idle"  # of a pod that is warned because it uses none of its cards

API_VERSION: Final = f"{DOMAIN}/v1alpha1"
GPUNODES_PATH: Final = f"/apis/{DOMAIN}/v1alpha1/gpunodes"
SCHEDULER: Final = "vgpu-scheduler"
NAMESPACE: Final = Namespace("vgpu-system")

ADMIN_SERVICE: Final = "vgpu-admin"
ADMIN_PORT: Final = 9871
ADMIN_CLIENT_ROLE: Final = "vgpu-admin-client"  # of users who reach the Service through the API server
ADMIN_ACCOUNT: Final = "vgpu-admin"  # of administrators whose kubeconfig has no token
ADMIN_AUDIENCE: Final = f"admin.{DOMAIN}"  # of tokens that are good for the admin REST only
ADMIN_TOKEN_HEADER: Final = "X-Vgpu-Token"  # noqa: S105 - the API server removes Authorization from what it proxies
ADMIN_ANNOTATION: Final = f"{DOMAIN}/admin"  # of the extender's Lease: where the admin REST of its holder is
RELAYED_HEADER: Final = "X-Vgpu-Relayed"  # of a request that one replica of the extender sends to another


def pod_path(namespace: Namespace, name: str) -> str:
    """Return the path of a pod in the API server's REST API."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def node_lease(node: NodeName) -> str:
    """Return the name of the Lease that the device plugin of `node` renews."""
    return f"vgpu-node-{node}"


def node_of_lease(lease: str) -> NodeName:
    """Return the node whose device plugin renews a Lease, empty for another Lease."""
    prefix = node_lease(NO_NODE)
    return NodeName(lease.removeprefix(prefix)) if lease.startswith(prefix) else NO_NODE


MEMORY_ENV: Final = "VGPU_MEMORY_LIMIT"
CORES_ENV: Final = "VGPU_CORES_LIMIT"
COMPUTE_POLICY_ENV: Final = "VGPU_COMPUTE_POLICY"
MEMORY_POLICY_ENV: Final = "VGPU_MEMORY_POLICY"
