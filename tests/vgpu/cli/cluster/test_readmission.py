"""Which pods wait for the webhook, and how they are created again."""

from collections.abc import Mapping
from typing import Any

import pytest

from vgpu.cli.cluster import readmission
from vgpu.cli.failure import CommandFailed
from vgpu.domain import names

Pod = dict[str, Any]


def pod(name: str = "p", *, node: str = "", owner: str = "", **limits: str) -> Pod:
    owners = [{"kind": "ReplicaSet", "name": owner, "controller": True, "uid": "o"}] if owner else []
    limits = {key.replace("_", "-"): value for key, value in limits.items()}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}", "ownerReferences": owners},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": _named(limits)}}]},
        "status": {"phase": "Pending"},
    }


def _named(limits: Mapping[str, str]) -> dict[str, str]:
    return {f"{names.DOMAIN}/{key}": value for key, value in limits.items()}


class Server:
    """An API server with pods, whose webhook adds slices while `webhook` is true."""

    def __init__(self, *pods: Pod, webhook: bool = True) -> None:
        self.pods = {listed["metadata"]["name"]: listed for listed in pods}
        self.webhook = webhook
        self.queries: list[Mapping[str, Any]] = []

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Any:
        assert path in ("/api/v1/pods", "/api/v1/namespaces/team/pods")
        self.queries.append(query or {})
        first, *rest = self.pods.values()
        is_second = "continue" in (query or {})
        return {"items": rest if is_second else [first], "metadata": {} if is_second else {"continue": "x"}}

    def post(self, path: str, body: Any = None, query: Mapping[str, str | int] | None = None) -> Any:
        limits = body["spec"]["containers"][0]["resources"]["limits"]
        added = {names.SLICE: "4"} if self.webhook else {}
        spec = {**body["spec"], "containers": [{"name": "main", "resources": {"limits": limits | added}}]}
        created = {**body, "spec": spec}
        if not (query or {}).get("dryRun"):
            assert path.startswith("/api/v1/namespaces/team/pods")
            assert body["metadata"]["name"] not in self.pods
            assert "uid" not in body["metadata"]
            assert "status" not in body
            self.pods[body["metadata"]["name"]] = created
        return created

    def delete(self, path: str, body: Any = None) -> Any:
        gone = self.pods.pop(path.rpartition("/")[2])
        assert body == {"preconditions": {"uid": gone["metadata"]["uid"]}}


@pytest.mark.parametrize(
    ("found", "is_unadmitted"),
    [
        (pod(gpu_mem="8192"), True),
        (pod(gpu="1"), True),
        (pod(gpu_mem="8192", slice="32"), False),
        (pod(gpu="1", card="1"), False),
        (pod(gpu_mem="8192", node="n1"), False),
        (pod(), False),
        ({**pod(), "spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpumem": "4096"}}}]}}, True),
        ({**pod(gpu_mem="8192"), "metadata": {"deletionTimestamp": "now"}}, False),
    ],
)
def test_a_pod_is_unadmitted_that_asks_and_has_nothing_of_the_webhooks(found: Pod, is_unadmitted: bool) -> None:
    assert readmission.is_unadmitted(found) == is_unadmitted


def test_every_page_of_pods_is_read() -> None:
    server = Server(pod("a", gpu_mem="1024"), pod("b"), pod("c", gpu="1"))
    assert [waiting["metadata"]["name"] for waiting in readmission.waiting(server, None)] == ["a", "c"]
    assert [waiting["metadata"]["name"] for waiting in readmission.waiting(server, "team")] == ["a", "c"]
    assert len(server.queries) == 4


def test_a_pod_without_a_controller_is_created_again() -> None:
    server = Server(pod("a", gpu_mem="1024"))
    assert readmission.readmit(server, server.pods["a"]) == "created again"
    assert not readmission.is_unadmitted(server.pods["a"])


def test_a_pod_with_a_controller_is_deleted() -> None:
    server = Server(pod("a", gpu_mem="1024", owner="web-1"))
    assert readmission.readmit(server, server.pods["a"]) == "deleted; ReplicaSet/web-1 creates another"
    assert not server.pods


def test_nothing_is_changed_while_the_webhook_does_not_answer() -> None:
    server = Server(pod("a", gpu_mem="1024"), webhook=False)
    before = server.pods["a"]
    with pytest.raises(CommandFailed, match="does not answer yet; nothing was changed"):
        readmission.readmit(server, before)
    assert server.pods["a"] is before
