"""Bind: decide once more on the chosen node, take the cards, and write the decision with the Binding.

The Binding carries the assignment as an annotation, which the API server merges into the pod: one write per pod.
Its UID is a precondition, so a recreated pod of the same name is not bound by mistake. An answer that never came
may have been carried out all the same: it is settled by reading the pod, and the reservation stays until that tells.
"""

import asyncio
from typing import Any, Final, Protocol

import msgspec

from extender import binding_outcome, objects
from extender import filter as filter_verb
from extender.binding_outcome import Outcome, Pursuits, Sleep
from extender.cluster import Cluster
from extender.objects import Pod
from extender.reservations import Reservation
from extender.wire import BindArgs
from vgpu import assignment, names, reasons
from vgpu.adapters.kubernetes.client import Client
from vgpu.assignment import Assignment
from vgpu.errors import KubernetesError
from vgpu.placement.choose import Refusal
from vgpu.placement.policies import DefaultPolicies

POST_TIMEOUT_S: Final = 3.0  # below kube-scheduler's httpTimeout, so that it hears the settled outcome
GET_TIMEOUT_S: Final = 1.0
NOT_FOUND: Final = 404
CONFLICT: Final = 409


class Leader(Protocol):
    """Says whether this replica may bind."""

    def refusal(self) -> str:
        """Why this replica must not bind now; empty where it may."""


class Binder:
    """The extender's one effectful verb. Answers kube-scheduler's `Error` text: empty means bound."""

    def __init__(
        self, client: Client, cluster: Cluster, defaults: DefaultPolicies, leader: Leader, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._defaults = defaults
        self._leader = leader
        self._pursuits = Pursuits(self._read, self._conclude, sleep)
        self._in_flight: dict[tuple[str, str], asyncio.Task[str]] = {}

    async def bind(self, args: BindArgs) -> str:
        """Bind once per pod and node: a call repeated while the first is on its way waits for the same answer."""
        key = (args.pod_uid, args.node)
        task = self._in_flight.get(key)
        if task is None:
            task = asyncio.create_task(self._bind(args))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key, None))
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for the Bindings on their way, and ask no more after those that are unknown."""
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)
        await self._pursuits.close()

    async def _bind(self, args: BindArgs) -> str:
        try:
            pod = self._cluster.pods.get(args.pod_uid) or await self._read(args)
        except KubernetesError as error:
            return f"the pod could not be read: {error}"
        if pod is None or pod.uid != args.pod_uid:
            return f"pod {args.pod_namespace}/{args.pod_name} with UID {args.pod_uid} is gone"
        if pod.node:
            return "" if pod.node == args.node else f"pod is already bound to {pod.node}"
        chosen = self._take(pod, args.node)
        return chosen if isinstance(chosen, str) else await self._post(args, chosen)

    def _take(self, pod: Pod, node: str) -> Assignment | str:
        """Check and reserve in one step: nothing here awaits. Returns the refusal as text."""
        refusal = self._leader.refusal()
        if refusal:
            return refusal
        earlier = self._cluster.reservation(pod.uid, node)
        if earlier is not None:  # an outcome still unknown: only the same assignment is safe to post again
            return earlier.assignment
        chosen = filter_verb.judge(pod, node, self._cluster, self._defaults)
        if isinstance(chosen, Refusal):
            return reasons.text(chosen.reason)
        if pod.parsed.request is not None:
            self._cluster.reserve(Reservation(pod.uid, node, pod.parsed.request, chosen))
        return chosen

    async def _post(self, args: BindArgs, chosen: Assignment) -> str:
        path = f"/api/v1/namespaces/{args.pod_namespace}/pods/{args.pod_name}/binding"
        is_again = self._pursuits.stop(args)
        try:
            await self._client.post(path, binding(args, chosen), timeout=POST_TIMEOUT_S)
        except KubernetesError as error:
            return await self._settle(args, chosen, error, is_again=is_again)
        self._conclude(args, Outcome.BOUND)
        return ""

    async def _settle(self, args: BindArgs, chosen: Assignment, failure: KubernetesError, *, is_again: bool) -> str:
        """Find out what became of a Binding that was not plainly accepted.

        Where it was posted again, an earlier one may still be carried out though this one is refused, and Conflict may
        mean: it was.
        """
        is_over = failure.is_definite and not is_again
        try:
            pod = await self._read(args)
        except KubernetesError:
            outcome = Outcome.NOT_BOUND if is_over and failure.status != CONFLICT else Outcome.UNKNOWN
        else:
            outcome = binding_outcome.judge(pod, args, chosen, is_over=is_over)
        if outcome is Outcome.UNKNOWN:
            self._pursuits.start(args, chosen)
        else:
            self._conclude(args, outcome)
        return "" if outcome is Outcome.BOUND else str(failure)

    def _conclude(self, args: BindArgs, outcome: Outcome) -> None:
        if outcome is Outcome.BOUND:
            self._cluster.await_watch(args.pod_uid, args.node)
        else:
            self._cluster.release(args.pod_uid, args.node)

    async def _read(self, args: BindArgs) -> Pod | None:
        path = f"/api/v1/namespaces/{args.pod_namespace}/pods/{args.pod_name}"
        try:
            data = await self._client.get(path, timeout=GET_TIMEOUT_S)
        except KubernetesError as error:
            if error.status == NOT_FOUND:
                return None
            raise
        return objects.pod(msgspec.json.decode(data))


def binding(args: BindArgs, chosen: Assignment) -> dict[str, Any]:
    """Build the Binding: the pod's UID as a precondition, and the assignment where there is one."""
    metadata: dict[str, Any] = {"namespace": args.pod_namespace, "name": args.pod_name, "uid": args.pod_uid}
    if chosen.containers:
        metadata["annotations"] = {names.ASSIGNMENT: assignment.encode(chosen)}
    target = {"apiVersion": "v1", "kind": "Node", "name": args.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
