"""A client of a scheduler extender that behaves as kube-scheduler: protocol version 1, node names only.

https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from vgpu.domain.errors import OutsideError
from vgpu.domain.json_types import JsonObject


class ExtenderError(OutsideError):
    """The extender failed, did not answer in time, or violated the protocol."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer to filter: the nodes that fit, in the order asked, and the reasons of the others."""

    fitting: tuple[str, ...]
    refused: dict[str, str]


class _FilterResult(msgspec.Struct, rename="pascal"):
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class _HostPriority(msgspec.Struct, rename="pascal"):
    host: str
    score: int


class _BindingResult(msgspec.Struct, rename="pascal"):
    error: str = ""


class ExtenderClient:
    """One extender at a URL, with `nodeCacheCapable: true`; `timeout_s` is its httpTimeout."""

    def __init__(self, session: aiohttp.ClientSession, url: str, timeout_s: float = 5.0) -> None:
        self._session = session
        self._url = url
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)

    async def filter(self, pod: JsonObject, nodes: Sequence[str]) -> FilterAnswer:
        """Ask which nodes fit.

        Raises:
            ExtenderError: the extender failed, or named a node that was not asked about.
        """
        answer = await self._ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}, _FilterResult)
        if answer.error:
            raise ExtenderError(f"filter: {answer.error}")
        fitting = set(answer.node_names or ())
        if not fitting <= set(nodes):
            raise ExtenderError(f"filter: named nodes that were not asked about: {sorted(fitting - set(nodes))}")
        refused = (answer.failed_nodes or {}) | (answer.failed_and_unresolvable_nodes or {})
        return FilterAnswer(tuple(node for node in nodes if node in fitting), refused)

    async def best(self, pod: JsonObject, nodes: Sequence[str]) -> str:
        """Return the node with the best score, the first of equals; where prioritize fails, the first node."""
        try:
            scores = await self._ask("prioritize", {"Pod": pod, "NodeNames": list(nodes)}, list[_HostPriority])
        except ExtenderError:
            return nodes[0]
        by_node = {entry.host: entry.score for entry in scores}
        return max(nodes, key=lambda node: by_node.get(node, 0))

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Ask the extender to bind a pod.

        Raises:
            ExtenderError: the pod is not bound, or it is not known whether it is.
        """
        metadata = pod["metadata"]
        args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        answer = await self._ask("bind", {**args, "Node": node}, _BindingResult)
        if answer.error:
            raise ExtenderError(f"bind: {answer.error}")

    async def _ask(self, verb: str, args: JsonObject, answer: type[Any]) -> Any:
        body, headers = msgspec.json.encode(args), {"Content-Type": "application/json"}
        try:
            url = f"{self._url}/{verb}"
            async with self._session.post(url, data=body, headers=headers, timeout=self._timeout) as response:
                data = await response.read()
                if response.status != 200:  # noqa: PLR2004 - kube-scheduler accepts no other status
                    raise ExtenderError(f"{verb}: HTTP {response.status}: {data[:200].decode(errors='replace')}")
                return msgspec.json.decode(data, type=answer)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise ExtenderError(f"{verb}: {error or type(error).__name__}") from error
