"""Bind: place the pod again on the chosen node, reserve the cards, and write the assignment with the Binding.

The Binding carries the assignment as an annotation, which the API server merges into the pod: one write per pod. The
pod's UID is a precondition, so that a recreated pod of the same name is not bound by mistake. A Binding whose answer
never came may have been carried out: the pod is read, and the reservation stays until the outcome is known.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from extender.gangs.bind_gate import BindGate
from extender.gangs.job_owners import JobOwners
from extender.history.recording.feed import Feed
from extender.lead import binding_outcome
from extender.lead.binding_outcome import POST_TIMEOUT_S, BindingOutcome, OutcomePoller, Sleep
from extender.lead.leader import Leader
from extender.protocol.wire import BindArgs
from extender.state.objects import WatchedPod
from extender.state.pod_reader import PodReader
from extender.state.reservations import Reservation, Reservations
from extender.verbs.filter import Filter
from vgpu.adapters import deep_json
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain import names
from vgpu.domain.asks import job_identity
from vgpu.domain.asks.gang import Gang
from vgpu.domain.cards import reasons
from vgpu.domain.errors import KubernetesError
from vgpu.domain.grants import assignment
from vgpu.domain.grants.assignment import Assignment
from vgpu.domain.identifiers import NodeName, PodUid
from vgpu.placement.choose import NodeRefusal

GET_TIMEOUT_S: Final = 1.0


class Binder:
    """The extender's only verb with effects. Returns kube-scheduler's `Error` text: empty means bound.

    `pods` are those that the watch shows, by UID. Without `owners` a job is what one controller made.
    """

    def __init__(
        self,
        client: KubernetesClient,
        pods: Mapping[PodUid, WatchedPod],
        reader: PodReader,
        reservations: Reservations,
        node_filter: Filter,
        leader: Leader,
        history: Feed,
        gate: BindGate,
        sleep: Sleep = asyncio.sleep,
        owners: JobOwners | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._owners = owners
        self._pods = pods
        self._reader = reader
        self._reservations = reservations
        self._filter = node_filter
        self._leader = leader
        self._history = history
        self._poller = OutcomePoller(self._read, self._conclude, sleep)
        self._in_flight: dict[tuple[str, str], asyncio.Task[str]] = {}

    async def bind(self, args: BindArgs) -> str:
        """Bind once per pod and node: a call repeated while the first is in flight gets the first one's answer."""
        key = (args.pod_uid, args.node)
        task = self._in_flight.get(key)
        if task is None:
            task = asyncio.create_task(self._bind(args))
            self._in_flight[key] = task
            task.add_done_callback(lambda _: self._in_flight.pop(key, None))
        return await asyncio.shield(task)

    async def drain(self, timeout_s: float) -> bool:
        """Wait for the Bindings in flight, and for unknown outcomes `timeout_s` seconds at most.

        Returns whether all outcomes are known: otherwise a Binding may still be carried out.
        """
        await asyncio.gather(*self._in_flight.values(), return_exceptions=True)
        return await self._poller.close(timeout_s)

    async def _bind(self, args: BindArgs) -> str:
        try:
            pod = self._pods.get(args.pod_uid) or await self._read(args)
        except KubernetesError as error:
            return f"the pod could not be read: {error}"
        if pod is None or pod.uid != args.pod_uid:
            return f"pod {args.pod_namespace}/{args.pod_name} with UID {args.pod_uid} is gone"
        if pod.node:
            return "" if pod.node == args.node else f"pod is already bound to {pod.node}"
        owner, waits = await self._admit(pod, args.node)
        if waits:
            return waits
        is_repeated = self._reservations.get(args.pod_uid, args.node) is not None
        chosen = self._reserve(pod, args.node)
        if isinstance(chosen, str):
            return chosen
        return await self._post(args, binding(args, chosen, pod.parsed.gang, owner), chosen, is_repeated=is_repeated)

    async def _admit(self, pod: WatchedPod, node: NodeName) -> tuple[str, str]:
        """Return the UID of what made the pod's job, and why the pod must not be bound now; empty where it may.

        It may until the next await. The owner is read before the gate, which no part of a gang passes without others.
        """
        try:
            owner = await self._owners.of(pod) if self._owners is not None and pod.parsed.request is not None else ""
        except KubernetesError as error:
            return "", f"what made the pod could not be read: {error}"
        return owner, await self._gate.admit(pod, node)

    def _reserve(self, pod: WatchedPod, node: NodeName) -> Assignment | str:
        """Place and reserve in one step without awaiting. Returns a refusal as text."""
        refusal = self._leader.refusal()
        if refusal:
            return refusal
        earlier = self._reservations.get(pod.uid, node)
        if earlier is not None:  # it may be carried out, or was already, so only the same assignment is posted again
            return earlier.assignment
        chosen = self._filter.node(pod, node)
        if isinstance(chosen, NodeRefusal):
            return reasons.text(chosen.reason)
        if pod.parsed.request is not None:
            self._reservations.put(Reservation(pod.uid, node, pod.parsed.request, chosen, pod.version))
        return chosen

    async def _post(self, args: BindArgs, body: dict[str, Any], chosen: Assignment, *, is_repeated: bool) -> str:
        path = f"{names.pod_path(args.pod_namespace, args.pod_name)}/binding"
        self._poller.stop(args)
        try:
            await self._client.post(path, body, timeout=POST_TIMEOUT_S)
        except KubernetesError as error:
            return await self._resolve(args, chosen, error, is_repeated=is_repeated)
        self._conclude(args, BindingOutcome.BOUND)
        return ""

    async def _resolve(self, args: BindArgs, chosen: Assignment, failure: KubernetesError, *, is_repeated: bool) -> str:
        """Find the outcome of a Binding that the API server did not accept.

        Of a repeated Binding an earlier post may still be carried out although this one is refused, or was carried out
        and no watch has shown it; Conflict may mean that the earlier one was.
        """
        is_final = failure.is_definite and not is_repeated
        try:
            pod = await self._read(args)
        except KubernetesError:
            outcome = (
                BindingOutcome.NOT_BOUND
                if is_final and failure.status != HTTPStatus.CONFLICT
                else BindingOutcome.UNKNOWN
            )
        else:
            outcome = binding_outcome.judge(pod, args, chosen, is_final=is_final)
        if outcome is BindingOutcome.UNKNOWN:
            self._poller.start(args, chosen)
        else:
            self._conclude(args, outcome)
        return "" if outcome is BindingOutcome.BOUND else str(failure)

    def _conclude(self, args: BindArgs, outcome: BindingOutcome) -> None:
        if outcome is BindingOutcome.BOUND:
            self._tell_history(args)
            self._reservations.remove_when_seen(args.pod_uid, args.node)
        else:
            self._reservations.remove(args.pod_uid, args.node)

    def _tell_history(self, args: BindArgs) -> None:
        """Record a Binding that was carried out; one of a pod that no watch has shown is recorded by the watch."""
        pod, reserved = (
            self._pods.get(args.pod_uid),
            self._reservations.get(args.pod_uid, args.node),
        )
        chosen = reserved.assignment if reserved else pod.assignment if pod else None
        if pod is not None and isinstance(chosen, Assignment):
            self._history.bound(pod, args.node, chosen)

    async def _read(self, args: BindArgs) -> WatchedPod | None:
        path = names.pod_path(args.pod_namespace, args.pod_name)
        try:
            data = await self._client.get(path, timeout=GET_TIMEOUT_S)
        except KubernetesError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return await deep_json.decode(self._reader.encoded, data)


def binding(args: BindArgs, chosen: Assignment, gang: Gang | None = None, owner: str = "") -> dict[str, Any]:
    """Build the Binding: the pod's UID as a precondition, and the assignment where there is one.

    `gang` is the one that the pod is placed with, which the gate has let through, and `owner` the UID of what made its
    job: its node writes the job from them.
    """
    metadata: dict[str, Any] = {"namespace": args.pod_namespace, "name": args.pod_name, "uid": args.pod_uid}
    if chosen.containers:
        metadata["annotations"] = {names.ASSIGNMENT: assignment.encode(chosen)}
        if gang is not None:
            metadata["annotations"][names.PLACED_GANG] = job_identity.placed_gang(gang, owner)
    target = {"apiVersion": "v1", "kind": "Node", "name": args.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
