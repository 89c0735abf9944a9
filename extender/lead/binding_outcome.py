"""The outcome of a Binding: read from the pod, and polled for where it cannot be known yet.

A Binding whose answer never came may still be carried out, until its deadline at the API server has passed (ADR 23).
So its cards stay reserved until then, and until the pod has been read afterwards. Waiting alone decides nothing,
because a watch that lags may not show a Binding that was carried out late.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final

from extender.protocol.wire import BindArgs
from extender.state.objects import WatchedPod
from vgpu.domain.errors import KubernetesError
from vgpu.domain.grants.assignment import Assignment

POST_TIMEOUT_S: Final = 3.0  # below kube-scheduler's httpTimeout, so that kube-scheduler receives the final outcome
ETCD_TIMEOUT_S: Final = 7.0  # etcd's own limit for a write that it has received, with its default election timeout
REQUEST_EXPIRY_S: Final = 15.0  # after this nothing carries a Binding out: travel, API server, etcd, and 2 s of margin
RETRY_S: Final = 5.0

log = logging.getLogger(__name__)

Key = tuple[str, str]
Read = Callable[[BindArgs], Awaitable[WatchedPod | None]]
Sleep = Callable[[float], Awaitable[None]]


class BindingOutcome(Enum):
    """What became of a Binding."""

    BOUND = auto()
    NOT_BOUND = auto()
    UNKNOWN = auto()


def judge(pod: WatchedPod | None, args: BindArgs, chosen: Assignment, *, is_final: bool) -> BindingOutcome:
    """Return the outcome that a pod shows, as the API server returned it (None: there is no such pod).

    `is_final`: the request was refused, or has expired, so that it will not be carried out any more.
    """
    if pod is None or pod.uid != args.pod_uid:
        return BindingOutcome.NOT_BOUND
    if pod.node:
        is_ours = pod.node == args.node and pod.assignment == chosen
        return BindingOutcome.BOUND if is_ours else BindingOutcome.NOT_BOUND
    return BindingOutcome.NOT_BOUND if is_final else BindingOutcome.UNKNOWN


class OutcomePoller:
    """Reads the pods of Bindings whose outcome is unknown, in one task for each pod and node.

    `read` reads a pod from the API server; `on_outcome` is called once with BOUND or NOT_BOUND.
    """

    def __init__(
        self, read: Read, on_outcome: Callable[[BindArgs, BindingOutcome], None], sleep: Sleep = asyncio.sleep
    ) -> None:
        self._read = read
        self._on_outcome = on_outcome
        self._sleep = sleep
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def start(self, args: BindArgs, chosen: Assignment) -> None:
        """Poll, from the moment on when the last Binding posted can no longer be carried out."""
        self.stop(args)
        self._tasks[args.pod_uid, args.node] = asyncio.create_task(self._poll(args, chosen))

    def stop(self, args: BindArgs) -> None:
        """Stop polling, because the Binding is posted again."""
        task = self._tasks.pop((args.pod_uid, args.node), None)
        if task is not None:
            task.cancel()

    async def close(self, timeout_s: float) -> bool:
        """Wait for all outcomes, `timeout_s` seconds at most, then cancel; return whether all of them are known."""
        tasks = list(self._tasks.values())
        if not tasks:
            return True
        _, unknown = await asyncio.wait(tasks, timeout=timeout_s)
        for task in unknown:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return not unknown

    async def _poll(self, args: BindArgs, chosen: Assignment) -> None:
        await self._sleep(REQUEST_EXPIRY_S)
        while True:
            try:
                pod = await self._read(args)
            except KubernetesError as error:
                log.warning("pod %s/%s: outcome of the Binding unknown: %s", args.pod_namespace, args.pod_name, error)
                await self._sleep(RETRY_S)
                continue
            del self._tasks[args.pod_uid, args.node]
            self._on_outcome(args, judge(pod, args, chosen, is_final=True))
            return
