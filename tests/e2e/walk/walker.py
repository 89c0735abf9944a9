"""Takes the steps of a plan on the cluster, and logs them: requests to the API server and the REST, and `vgpu set`."""

import json
import time
from pathlib import Path
from typing import Any, Final

from tests.e2e.monitor import json_depth
from tests.e2e.monitor.findings import Finding
from tests.e2e.walk import limits_change, plan, queue
from tests.e2e.walk.plan import (
    HIGH,
    LIMITED,
    NAMESPACE,
    QUEUED,
    ApiRequest,
    CardCommand,
    Effect,
    NewLimits,
    NodeCordon,
    Step,
)
from tests.e2e.walk.views import rest_client
from tests.e2e.walk.walk_cluster import FAILURES, WalkCluster
from vgpu.domain import names

QUOTA_MIB: Final = 40 * 1024
Json = dict[str, Any]


class Walker:
    """Takes steps on a cluster; a line of `log` says when each was taken, and what became of it."""

    def __init__(self, cluster: WalkCluster, log: Path) -> None:
        self.cluster = cluster
        self.findings = list[Finding]()  # of steps that did not do what they must
        self._cards = [card.uuid for card in cluster.nodes[0].cards]
        self._log = log
        self._started = time.monotonic()
        log.write_text("")

    def prepare(self) -> None:
        """Create the namespaces, the quota, the class of high priority, and Kueue with a queue."""
        for namespace in (NAMESPACE, LIMITED, QUEUED):
            self.cluster.create_namespace(namespace)
        hard = {f"requests.{names.GPU_MEM}": str(QUOTA_MIB)}
        quota = {"metadata": {"name": "walk"}, "spec": {"hard": hard}}
        self.cluster.api.create(f"/api/v1/namespaces/{LIMITED}/resourcequotas", quota)
        high = {"metadata": {"name": HIGH}, "value": 1000}
        self.cluster.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", high)
        self.cluster.start_kueue()
        for path, manifest in queue.objects():
            self.cluster.api.create(path, manifest)

    def take(self, number: int, step: Step) -> None:
        """Take a step of a round, and write down what became of it."""
        at = round(time.monotonic() - self._started, 2)
        outcomes = [self._outcome(effect) for effect in step.effects]
        effects = [[type(effect).__name__, *effect] for effect in step.effects]
        said = {"round": number, "at_s": at, "action": step.action, "effects": effects, "outcomes": outcomes}
        with self._log.open("a") as log:
            log.write(json.dumps(said) + "\n")
        time.sleep(step.pause_s)

    def pods(self) -> list[Json]:
        """Return the walk's pods; none where the API server is silent."""
        try:
            found = json_depth.loads(self.cluster.api.text("/api/v1/pods").encode())["items"]
        except FAILURES:
            return []
        return [item for item in found if item["metadata"]["namespace"] in (NAMESPACE, LIMITED, QUEUED)]

    def delete(self, item: Json) -> None:
        """Delete a pod that has ended, which is no step of the plan."""
        path = f"/api/v1/namespaces/{item['metadata']['namespace']}/pods/{item['metadata']['name']}"
        self._outcome(ApiRequest("DELETE", path))

    def _outcome(self, effect: Effect) -> str:
        try:
            return self._done(effect)
        except FAILURES as error:
            return str(error)[:200]

    def _done(self, effect: Effect) -> str:
        match effect:
            case ApiRequest():
                self.cluster.api.request(*effect)
            case NodeCordon(is_closed):
                request = plan.node_cordon(self.cluster.nodes[1].name, is_closed=is_closed)
                self.cluster.api.request(*request)
            case CardCommand(command, card):
                with rest_client(self.cluster) as rest:
                    rest.post(f"/gpus/{self._cards[card]}/{command}").raise_for_status()
            case NewLimits():
                found = list(limits_change.change(self.cluster, effect))
                self.findings += [finding for finding in found if finding]
                return f"{len(found)} containers"
        return "done"
