"""Remembers where a request would land on a node, for as long as nothing changed there.

A crowd of equal pods asks the same question of every node, and each of them changes one node only. An answer is
good for the very object it was computed from: `Cluster.state` makes a new one whenever anything on the node
changes.
"""

from collections import OrderedDict
from typing import Final

from vgpu.assignment import Assignment
from vgpu.placement import choose
from vgpu.placement.choose import Refusal
from vgpu.policy import PackingPolicy
from vgpu.request import PodRequest
from vgpu.share import NodeState

QUESTIONS: Final = 64

Answer = Assignment | Refusal


class Answers:
    """The latest questions, each with its answers by node."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[PodRequest, PackingPolicy], dict[str, tuple[NodeState, Answer]]] = OrderedDict()

    def to(self, request: PodRequest, policy: PackingPolicy) -> "Question":
        """Take up a question; of more than 64 the one not asked for longest is forgotten."""
        key = (request, policy)
        known = self._known.setdefault(key, {})
        self._known.move_to_end(key)
        if len(self._known) > QUESTIONS:
            self._known.popitem(last=False)
        return Question(request, policy, known)


class Question:
    """One request under one policy, asked of any number of nodes."""

    def __init__(self, request: PodRequest, policy: PackingPolicy, known: dict[str, tuple[NodeState, Answer]]) -> None:
        self._request = request
        self._policy = policy
        self._known = known

    def ask(self, state: NodeState) -> Answer:
        """Where the request would land on this node as it is now, or why it cannot."""
        found = self._known.get(state.name)
        if found is not None and found[0] is state:
            return found[1]
        answer = choose.place(self._request, state, self._policy)
        self._known[state.name] = (state, answer)
        return answer
