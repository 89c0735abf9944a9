"""`vgpu.placement.simulate` on the index: a pod among 5,000 nodes takes milliseconds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from extender.admin.worker.fleet import Fleet
from extender.index import ask
from extender.index.choice import Choice
from vgpu.assignment import Assignment
from vgpu.placement import explain
from vgpu.placement.choose import Refusal
from vgpu.placement.explain import NearestFit
from vgpu.placement.policies import DefaultPolicies
from vgpu.placement.simulate import Landing, Wanted
from vgpu.reasons import Reason


class Simulation:
    """Places pods on a fleet, which changes."""

    def __init__(self, fleet: Fleet, defaults: DefaultPolicies) -> None:
        self._fleet = fleet
        self._defaults = defaults
        self._refused: dict[Wanted, Landing] = {}  # as long as nothing changes

    def land(self, pods: Iterable[Wanted], pause: Callable[[], None]) -> Iterator[Landing]:
        """Yield where each pod is placed beside those before it; `pause` is called before each, and may raise."""
        for pod in pods:
            pause()
            landing = self.judge(pod)
            if landing.assignment is not None:
                view = self._fleet.views[landing.node]
                self._fleet.put(view.with_pod(pod.request, landing.assignment, pod.host))
                self._refused.clear()
            yield landing

    def judge(self, pod: Wanted) -> Landing:
        """Return where a pod would be placed now."""
        if pod not in self._refused:
            landing = self._judge(pod)
            if landing.assignment is not None:
                return landing
            self._refused[pod] = landing
        return self._refused[pod]

    def _judge(self, pod: Wanted) -> Landing:
        choice, request = self._fleet.choice(self._defaults.models), pod.request
        uuids = request.options.selector.named_uuids
        asks = [ask.of(request, each, self._fleet.slice_mib) for each in request.choosers]
        judged = choice.judge(asks, pod.host, self._fleet.nodes_with(uuids), lambda name: self._reason(pod, name))
        if not len(judged.fitting):
            return Landing(counts=judged.counts, nearest=self._nearest(pod, choice))
        question = self._defaults.question(request, self._fleet.slice_mib, pod.host)
        node = choice.best(judged, self._defaults.node_policy_for(request.options), question)
        placed = self._place(pod, node)
        assert isinstance(placed, Assignment)  # noqa: S101 - the index gives the answers of the exact rule
        return Landing(node, placed)

    def _nearest(self, pod: Wanted, choice: Choice) -> NearestFit | None:
        """Compare the few best nodes exactly; all of them where the pod names UUIDs, which the index does not know."""
        views, largest = self._fleet.views, explain.largest(pod.request)
        named: Iterable[str] = views
        selector = pod.request.options.selector
        if not selector.named_uuids and selector.beside is None:
            asked = ask.of(pod.request, largest, self._fleet.slice_mib)
            own = replace(asked, cores=pod.request.counted_cores(largest), card_mib=largest.memory_mib)
            named = [*choice.nearest(own, pod.host), *choice.wide()]
        return explain.nearest(pod.request, (views[name].for_pod(pod.host) for name in named))

    def _reason(self, pod: Wanted, node: str) -> Reason | None:
        placed = self._place(pod, node)
        return None if isinstance(placed, Assignment) else placed.reason

    def _place(self, pod: Wanted, node: str) -> Assignment | Refusal:
        return self._fleet.views[node].place(pod.request, self._defaults.gpu_policy_for(pod.request.options), pod.host)
