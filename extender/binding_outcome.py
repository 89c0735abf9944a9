"""What became of a Binding: told by the pod itself, and where it cannot be known yet, asked for until it is.

An answer that never came may still follow from the API server, which ends any request after a minute. So nobody may
take the cards before that minute is over and the pod has been read afterwards: time alone tells nothing, for a Binding
carried out late may be missing from a watch that lags.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final

from extender.objects import Pod
from extender.wire import BindArgs
from vgpu.assignment import Assignment
from vgpu.errors import KubernetesError

CARRIED_OUT_S: Final = 65.0  # kube-apiserver's --request-timeout is 60 s: what it has not done by then it never does
RETRY_S: Final = 5.0

log = logging.getLogger(__name__)

Key = tuple[str, str]
Read = Callable[[BindArgs], Awaitable[Pod | None]]
Sleep = Callable[[float], Awaitable[None]]


class Outcome(Enum):
    """What became of a Binding."""

    BOUND = auto()
    NOT_BOUND = auto()
    UNKNOWN = auto()


def judge(pod: Pod | None, args: BindArgs, chosen: Assignment, *, is_over: bool) -> Outcome:
    """Tell by the pod, as a read of the API server shows it (None: there is none).

    `is_over`: the request was refused, or is so old that it will not be carried out any more.
    """
    if pod is None or pod.uid != args.pod_uid:
        return Outcome.NOT_BOUND
    if pod.node:
        is_ours = pod.node == args.node and pod.assignment == chosen
        return Outcome.BOUND if is_ours else Outcome.NOT_BOUND
    return Outcome.NOT_BOUND if is_over else Outcome.UNKNOWN


class Pursuits:
    """Asks after Bindings whose outcome is unknown, one task for each pod and node.

    `read` asks the API server for the pod; `told` takes the answer, BOUND or NOT_BOUND, once.
    """

    def __init__(self, read: Read, told: Callable[[BindArgs, Outcome], None], sleep: Sleep = asyncio.sleep) -> None:
        self._read = read
        self._told = told
        self._sleep = sleep
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def start(self, args: BindArgs, chosen: Assignment) -> None:
        """Ask when the Binding posted last must have been carried out or never will be."""
        self.stop(args)
        self._tasks[args.pod_uid, args.node] = asyncio.create_task(self._pursue(args, chosen))

    def stop(self, args: BindArgs) -> bool:
        """Ask no more, for the Binding is being posted again; whether an earlier one's outcome is unknown."""
        task = self._tasks.pop((args.pod_uid, args.node), None)
        return task is not None and task.cancel()

    async def close(self) -> None:
        """End all of it; whoever reads the pods next finds what became of them."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pursue(self, args: BindArgs, chosen: Assignment) -> None:
        await self._sleep(CARRIED_OUT_S)
        while True:
            try:
                pod = await self._read(args)
            except KubernetesError as error:
                log.warning("pod %s/%s: whether it is bound is not known: %s", args.pod_namespace, args.pod_name, error)
                await self._sleep(RETRY_S)
                continue
            del self._tasks[args.pod_uid, args.node]
            self._told(args, judge(pod, args, chosen, is_over=True))
            return
