"""What a pod's manifest asks of GPUs.

`parse` reads vgpushare's own resource names only; the webhook has translated foreign names. Every field that cannot be
read is a problem: an invalid amount never means that the pod asks for no GPU.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from vgpu.domain import names, quantity, slices, suggestion
from vgpu.domain.asks import gang, policy, space
from vgpu.domain.asks.gang import Gang
from vgpu.domain.asks.policy import ComputePolicy, MemoryPolicy, PodOptions
from vgpu.domain.identifiers import ContainerName
from vgpu.domain.json_types import Json
from vgpu.domain.problem import Problem
from vgpu.domain.quantity import FULL_CORES, WHOLE_PERCENT

MAX_GPUS = 64
MAX_GPU_CONTAINERS = 32  # of a pod; each is placed and enforced by itself
MAX_CONTAINERS = 128  # of a pod that asks for GPUs, in all; the webhook changes each of them


_PREFIX = f"{names.DOMAIN}/"
TOO_MANY_CONTAINERS = Problem(
    "spec.containers",
    "",
    f"a pod that asks for GPUs may have {MAX_CONTAINERS} containers in all, init containers included, of which "
    f"{MAX_GPU_CONTAINERS} may ask for GPUs; use several pods",
)


class ContainerKind(StrEnum):
    """When a container runs, which decides which other containers' cards it can use at another time."""

    APP = "app"
    INIT = "init"  # ends before the next container starts
    SIDECAR = "sidecar"  # an init container with restartPolicy Always: runs beside all later containers


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """What one container asks for.

    Attributes:
        name: the container's name.
        kind: app, init or sidecar.
        gpus: number of different cards.
        memory_mib: MiB on each card; 0 where whole cards or a percentage are asked for.
        cores: percent of each card's time; None where no time is asked for.
        whole: whether whole cards are asked for.
        memory_percentage: percent of each card's memory, where that form is used and not resolved into MiB yet.
    """

    name: ContainerName
    kind: ContainerKind
    gpus: int
    memory_mib: int = 0
    cores: int | None = None
    whole: bool = False
    memory_percentage: int | None = None


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a pod asks for.

    Attributes:
        containers: the containers that ask for GPUs, at least one, in the kubelet's order: init containers first.
        options: what the pod's annotations set.
        anchor: the container whose cards the init containers use: the first app container, else the first init
            container, else the first. The kubelet hands an init container's devices on to the next container that asks
            for the same resource.
    """

    containers: tuple[ContainerRequest, ...]
    options: PodOptions = field(default_factory=PodOptions)
    anchor: ContainerRequest = field(init=False, repr=False, compare=False)
    _anchored_mib: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "anchor", _anchor(self.containers))
        shared = (c.memory_mib for c in self.containers if self.shares_anchor_cards(c))
        object.__setattr__(self, "_anchored_mib", max(shared, default=0))

    @property
    def choosers(self) -> list[ContainerRequest]:
        """The containers that choose cards, in the kubelet's order: the anchor chooses for the init containers."""
        anchor = self.anchor
        return [c for c in self.containers if c is anchor or not self.shares_anchor_cards(c)]

    def shares_anchor_cards(self, container: ContainerRequest) -> bool:
        """Whether the container uses the anchor's cards: the anchor itself and every init container do."""
        return container.kind is ContainerKind.INIT or container is self.anchor

    def counted_cores(self, container: ContainerRequest) -> int:
        """Return the percent of a card's time that is reserved: all of it for whole cards, none for best-effort."""
        if container.whole:
            return FULL_CORES
        if self.options.compute_policy is ComputePolicy.BEST_EFFORT:
            return 0
        return container.cores or 0

    def slices(self, container: ContainerRequest, slice_mib: int) -> int:
        """Return the slices on each card; equal for containers between which the kubelet hands devices on."""
        memory_mib = self._anchored_mib if self.shares_anchor_cards(container) else container.memory_mib
        return slices.holding(memory_mib, slice_mib)

    def kubelet_resource(self, container: ContainerRequest, slice_mib: int) -> tuple[str, int]:
        """Return the name and amount of the resource that the webhook adds for the kubelet."""
        if container.whole:
            return names.CARD, container.gpus
        return names.SLICE, container.gpus * self.slices(container, slice_mib)

    def devices(self, slice_mib: int) -> dict[str, int]:
        """Return what the kubelet counts for the pod, by resource: the most of an init phase or of all app containers.

        Sidecars run in every phase. Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
        """
        if len(self.containers) == 1:
            resource, amount = self.kubelet_resource(self.containers[0], slice_mib)
            return {resource: amount} if amount else {}
        lasting, final, init = Counter[str](), Counter[str](), Counter[str]()
        for container in self.containers:
            resource, amount = self.kubelet_resource(container, slice_mib)
            match container.kind:
                case ContainerKind.SIDECAR:
                    lasting[resource] += amount
                case ContainerKind.APP:
                    final[resource] += amount
                case ContainerKind.INIT:
                    init[resource] = max(init[resource], amount)
        return dict(lasting + (final | init))


def _anchor(containers: Sequence[ContainerRequest]) -> ContainerRequest:
    apps = (c for c in containers if c.kind is ContainerKind.APP)
    inits = (c for c in containers if c.kind is ContainerKind.INIT)
    return next(apps, None) or next(inits, None) or containers[0]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A manifest that was read: the request, None where no GPU is asked for, every problem, and the pod's gang.

    A pod with problems must not be placed.
    """

    request: PodRequest | None
    problems: tuple[Problem, ...] = ()
    gang: Gang | None = None


def parse(pod: Json) -> Parsed:
    """Read a pod's JSON, a well-formed pod object; `problems` names every field that is wrong."""
    if has_too_many_containers(pod, asks):
        return Parsed(None, (TOO_MANY_CONTAINERS,))
    problems: list[Problem] = []
    containers = [_container(*listed, problems) for listed in containers_of(pod) if asks(listed[2])]
    annotations = pod.get("metadata", {}).get("annotations") or {}
    options, wrong = policy.parse(annotations)
    member, unclear = gang.parse(pod)
    problems += [*wrong, *unclear]
    if not containers:
        return Parsed(None, tuple(problems), member)
    request = PodRequest(tuple(containers), options)
    problems += _anchor_problems(request)
    problems += _policy_problems(request)
    problems += _space_problems(request)
    return Parsed(request, tuple(problems), member)


def asks(container: Json) -> bool:
    """Whether a container names one of our resources."""
    resources = container.get("resources") or {}
    return any(name.startswith(_PREFIX) for side in ("limits", "requests") for name in resources.get(side) or ())


def has_too_many_containers(pod: Json, asks: Callable[[Json], bool]) -> bool:
    """Whether a pod has too many containers for which `asks` holds, or such a container among too many others.

    A pod may have 6,000 containers. This takes 1 ms for them, and every other function then sees 128 at most.
    """
    total = sum(len(pod.get("spec", {}).get(key) or ()) for key in ("containers", "initContainers"))
    if total <= MAX_GPU_CONTAINERS:
        return False
    asking = list(islice((None for _, _, container in containers_of(pod) if asks(container)), MAX_GPU_CONTAINERS + 1))
    return len(asking) > MAX_GPU_CONTAINERS or (bool(asking) and total > MAX_CONTAINERS)


def containers_of(pod: Json) -> Iterator[tuple[str, ContainerKind, Json]]:
    """Yield every container of a pod with its field path and kind, init containers first."""
    spec = pod.get("spec", {})
    for container in spec.get("initContainers") or ():
        kind = ContainerKind.SIDECAR if container.get("restartPolicy") == "Always" else ContainerKind.INIT
        yield f"spec.initContainers[{container.get('name')}]", kind, container
    for container in spec.get("containers") or ():
        yield f"spec.containers[{container.get('name')}]", ContainerKind.APP, container


def amounts(container: Json) -> dict[str, str]:
    """Return a container's requests and limits in one map; limits take precedence over requests."""
    resources = container.get("resources") or {}
    merged = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {name: str(value) for name, value in merged.items()}


def _container(path: str, kind: ContainerKind, container: Json, problems: list[Problem]) -> ContainerRequest:
    asked = {name: value for name, value in amounts(container).items() if name.startswith(_PREFIX)}
    reader = _RequestReader(f"{path}.resources.limits", asked, problems)
    gpus = reader.number(names.GPU, 1, MAX_GPUS)
    memory = reader.number(names.GPU_MEM, 1, quantity.MAX_MIB)
    percentage = reader.number(names.GPU_MEM_PERCENTAGE, 1, WHOLE_PERCENT)
    cores = reader.number(names.GPU_CORES, 1, FULL_CORES * (gpus or 1))
    reader.check_combination()
    return ContainerRequest(
        name=ContainerName(str(container.get("name"))),
        kind=kind,
        gpus=gpus or 1,
        memory_mib=reader.per_card(names.GPU_MEM, memory or 0, gpus or 1),
        cores=None if cores is None else reader.per_card(names.GPU_CORES, cores, gpus or 1),
        whole=names.GPU in asked and names.GPU_MEM not in asked and names.GPU_MEM_PERCENTAGE not in asked,
        memory_percentage=percentage,
    )


@dataclass(frozen=True, slots=True)
class _RequestReader:
    """Reads one container's amounts and collects the problems."""

    path: str
    asked: Mapping[str, str]
    problems: list[Problem]

    def number(self, name: str, low: int, high: int) -> int | None:
        text = self.asked.get(name)
        if text is None:
            return None
        value = quantity.whole_number(text)
        if value is not None and low <= value <= high:
            return value
        hint = quantity.number_hint(text) if name == names.GPU_MEM else ""
        if name == names.GPU_CORES and value is not None and high < value <= FULL_CORES * MAX_GPUS:
            gpus = -(-value // FULL_CORES)
            hint = f"; {-(-value // gpus) * gpus} over {gpus} cards: {names.GPU}: {gpus}"
        self.report(name, f"must be a plain whole number of {_UNITS[name]}, {low} to {high}{hint}")
        return None

    def per_card(self, name: str, total: int, gpus: int) -> int:
        if total % gpus:
            near = (total - total % gpus, total - total % gpus + gpus)
            most = quantity.MAX_MIB if name == names.GPU_MEM else FULL_CORES * gpus
            fitting = " or ".join(str(sum_) for sum_ in near if gpus <= sum_ <= most)
            why = f"is a total of {total} {_UNITS[name]}, and does not divide evenly over {gpus} GPUs; write {fitting}"
            self.report(name, why)
        return total // gpus

    def check_combination(self) -> None:
        asks_memory = names.GPU_MEM in self.asked or names.GPU_MEM_PERCENTAGE in self.asked
        if names.GPU_MEM in self.asked and names.GPU_MEM_PERCENTAGE in self.asked:
            self.report(names.GPU_MEM_PERCENTAGE, f"cannot be combined with {names.GPU_MEM}")
        if names.GPU_CORES in self.asked and not asks_memory:
            self.report(names.GPU_CORES, f"needs {names.GPU_MEM} or {names.GPU_MEM_PERCENTAGE} too")
        for name in self.asked.keys() - set(names.USER_RESOURCES) - set(names.KUBELET_RESOURCES):
            instead = suggestion.instead_of(name, names.USER_RESOURCES)
            self.problems.append(Problem(f"{self.path}[{name}]", "", f"is not a resource of {names.DOMAIN}; {instead}"))
        if not self.asked.keys() & set(names.USER_RESOURCES):
            for name in self.asked.keys() & set(names.KUBELET_RESOURCES):
                self.report(name, f"is added by the webhook; ask for {names.GPU_MEM} or {names.GPU} instead")

    def report(self, name: str, why: str) -> None:
        self.problems.append(Problem(f"{self.path}[{name}]", self.asked[name], why))


_UNITS = {
    names.GPU_MEM: "MiB",
    names.GPU_MEM_PERCENTAGE: "percent of a card's memory",
    names.GPU_CORES: "percent of a GPU's time",
    names.GPU: "GPUs",
}


def _policy_problems(request: PodRequest) -> Iterator[Problem]:
    """Yield a problem where a pod asks for a limit of its time without saying how much."""
    is_limited = any(container.cores or container.whole for container in request.containers)
    if request.options.compute_policy is ComputePolicy.FIXED and not is_limited:
        why = f"limits the time to a share; write {names.GPU_CORES} too, in percent"
        yield Problem(f"metadata.annotations[{names.COMPUTE_POLICY}]", ComputePolicy.FIXED, why)


def _space_problems(request: PodRequest) -> Iterator[Problem]:
    """Yield what does not go with the compute policy `space`."""
    if request.options.space is None:
        return
    for container in request.containers:
        asked = "whole cards" if container.whole else f"{container.gpus} GPUs"
        if container.whole or container.gpus > 1:
            why = f"cannot be combined with {asked} in container {container.name}: a group is on one shared card"
            yield Problem(f"metadata.annotations[{names.COMPUTE_POLICY}]", space.SPACE, why)
    if request.options.memory_policy is MemoryPolicy.SPILL:
        why = f"cannot be combined with {names.COMPUTE_POLICY}: {space.SPACE}: its memory does not move to the host"
        yield Problem(f"metadata.annotations[{names.MEMORY_POLICY}]", MemoryPolicy.SPILL, why)


def _anchor_problems(request: PodRequest) -> Iterator[Problem]:
    """Yield a problem for each container whose devices would differ from the anchor's.

    The kubelet hands devices on from one container to the next, and takes any subset of them where the amounts differ.
    """
    anchor = request.anchor
    init: ContainerRequest | None = None
    for container in request.containers:
        if container.kind is ContainerKind.SIDECAR and init is not None:
            yield Problem(
                f"spec.initContainers[{container.name}]",
                "",
                f"must be placed before init container {init.name}, whose devices the kubelet would hand on to it",
            )
        init = container if container.kind is ContainerKind.INIT else init
        if container is anchor or not request.shares_anchor_cards(container):
            continue
        field_path = f"spec.initContainers[{container.name}].resources.limits"
        if (container.whole, container.gpus) != (anchor.whole, anchor.gpus):
            yield Problem(
                field_path,
                "",
                f"must ask for the same number of GPUs as container {anchor.name}, whole or shared alike",
            )
        elif container.gpus > 1 and container.memory_mib != anchor.memory_mib:
            yield Problem(
                field_path,
                "",
                f"must ask for the same memory as container {anchor.name}, because it asks for several GPUs",
            )
