"""Valid pods, from which the hostile pods are made."""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.hostile_pods.case import Document
from vgpu.domain import names

_PAUSE: Final = {"image": "docker.io/local/pause:1", "command": ["/pause"]}


def container(name: str = "main", limits: Mapping[str, str] | None = None, **more: Any) -> Document:
    """Return a container that does nothing and ends at once on SIGTERM."""
    return {"name": name, **_PAUSE, "resources": {"limits": dict(limits or {})}, **more}


def pod(*containers: Document, init: tuple[Document, ...] = ()) -> Document:
    """Return a pod with a grace period of 1 s."""
    spec = {"containers": list(containers), "initContainers": list(init), "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {}, "labels": {}}, "spec": spec}


def _plain(_: random.Random) -> Document:
    return pod(container())


def _share(chance: random.Random) -> Document:
    return pod(container(limits={names.GPU_MEM: str(256 * chance.randint(1, 16))}))


def _share_with_cores(chance: random.Random) -> Document:
    limits = {names.GPU_MEM: str(chance.randint(1, 4096)), names.GPU_CORES: str(chance.randint(1, 20))}
    return pod(container(limits=limits))


def _several_cards(_: random.Random) -> Document:
    return pod(container(limits={names.GPU_MEM: "2048", names.GPU: "2", names.GPU_CORES: "10"}))


def _whole(_: random.Random) -> Document:
    return pod(container(limits={names.GPU: "1"}))


def _percentage(_: random.Random) -> Document:
    return pod(container(limits={names.GPU_MEM_PERCENTAGE: "1"}))


def _two_containers(chance: random.Random) -> Document:
    return pod(container(limits={names.GPU_MEM: str(chance.randint(1, 2048))}), container("side"))


def _init(_: random.Random) -> Document:
    asks = {names.GPU_MEM: "512"}
    ended = container("init", asks, image="docker.io/local/base:1", command=["true"])
    return pod(container(limits=asks), init=(ended,))


def _sidecar(_: random.Random) -> Document:
    asks = {names.GPU_MEM: "512"}
    return pod(container(limits=asks), init=(container("car", asks, restartPolicy="Always"),))


def _hami(_: random.Random) -> Document:
    return pod(container(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "700", "nvidia.com/gpucores": "5"}))


def _gpushare(_: random.Random) -> Document:
    return pod(container(limits={"aliyun.com/gpu-mem": "1"}))


def _volcano(_: random.Random) -> Document:
    return pod(container(limits={"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "600"}))


PODS: Final[tuple[Callable[[random.Random], Document], ...]] = (
    _plain,
    _share,
    _share,
    _share_with_cores,
    _several_cards,
    _whole,
    _percentage,
    _two_containers,
    _init,
    _sidecar,
    _hami,
    _gpushare,
    _volcano,
)
