"""Which pods wait for the webhook, and how they are created again."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from limiter.host import Host
from tests.vgpu.cli.cluster.conftest import Server as RestServer
from tests.vgpu.cli.cluster.conftest import run
from tests.vgpu.cli.cluster.test_endpoint import kubeconfig
from vgpu.cli.cluster.readmit import quota_refusals, readmission, readmit_command, saved_manifests
from vgpu.cli.failure import ANSWER_IS_NO, NO_ANSWER, NOT_ALLOWED, NOT_FOUND, CommandFailed
from vgpu.domain import names

Pod = dict[str, Any]
FULL = 'pods "p" is forbidden: exceeded quota: few, requested: {0}=1, used: {0}=4, limited: {0}={1}'


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
        self.quota = ""  # what a full quota says
        self.counted = False  # whether the quota still counts a deleted pod
        self.failures: dict[str, BaseException] = {}  # by request, before or after it is carried out
        self.queries: list[Mapping[str, Any]] = []

    def get(self, path: str, query: Mapping[str, str | int | Sequence[str]] | None = None) -> Any:
        if path.startswith("/api/v1/namespaces/team/pods/"):
            return self.get_pod(path)
        assert path in ("/api/v1/pods", "/api/v1/namespaces/team/pods")
        self.queries.append(query or {})
        first, *rest = self.pods.values()
        is_second = "continue" in (query or {})
        return {"items": rest if is_second else [first], "metadata": {} if is_second else {"continue": "x"}}

    def get_pod(self, path: str) -> Pod:
        name = path.rpartition("/")[2]
        if name not in self.pods:
            raise CommandFailed(f"pods {name} not found", NOT_FOUND)
        return self.pods[name]

    def post(self, path: str, body: Any = None, query: Mapping[str, str | int] | None = None) -> Any:
        is_trial = bool((query or {}).get("dryRun"))
        if self.quota and (is_trial or self.counted):
            raise CommandFailed(self.quota, NOT_ALLOWED)
        limits = body["spec"]["containers"][0]["resources"]["limits"]
        added = {names.SLICE: "4"} if self.webhook else {}
        spec = {**body["spec"], "containers": [{"name": "main", "resources": {"limits": limits | added}}]}
        created = {**body, "spec": spec, "metadata": {**body["metadata"], "uid": "new"}}
        if not is_trial:
            self._fail("POST before")
            assert path.startswith("/api/v1/namespaces/team/pods")
            if body["metadata"]["name"] in self.pods:
                raise CommandFailed("already exists", ANSWER_IS_NO)
            assert "uid" not in body["metadata"]
            assert "status" not in body
            self.pods[body["metadata"]["name"]] = created
            self._fail("POST after")
        return created

    def delete(self, path: str, body: Any = None) -> Any:
        gone = self.get_pod(path)
        assert body == {"preconditions": {"uid": gone["metadata"]["uid"]}}
        self._fail("DELETE before")
        if gone["metadata"].get("finalizers"):
            gone["metadata"]["deletionTimestamp"] = "now"
        else:
            del self.pods[gone["metadata"]["name"]]
        self.counted = bool(self.quota)
        self._fail("DELETE after")

    def _fail(self, moment: str) -> None:
        if failure := self.failures.pop(moment, None):
            raise failure


class Clock:
    """Time that passes by sleeping; what is planned happens at its second."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.planned: dict[float, Callable[[], object]] = {}

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for due in [at for at in self.planned if at <= self.now_s]:
            self.planned.pop(due)()

    @property
    def host(self) -> Host:
        return Host(lambda: int(self.now_s * 1e9), self.sleep, lambda: "id")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said() -> list[str]:
    return []


Readmit = Callable[[Server, str], str]


@pytest.fixture
def readmit(tmp_path: Path, clock: Clock, said: list[str]) -> Readmit:
    """Readmit a pod by its name, with manifests in `tmp_path`."""

    def readmit(server: Server, name: str) -> str:
        keep = partial(saved_manifests.kept, tmp_path, say=said.append)
        return readmission.readmit(server, server.pods[name], keep, clock.host, 60)

    return readmit


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


def test_a_pod_without_a_controller_is_created_again(readmit: Readmit, tmp_path: Path) -> None:
    server = Server(pod("a", gpu_mem="1024"))
    assert readmit(server, "a") == "created again"
    assert not readmission.is_unadmitted(server.pods["a"])
    assert list(tmp_path.iterdir()) == []


def test_a_pod_with_a_controller_is_deleted(readmit: Readmit) -> None:
    server = Server(pod("a", gpu_mem="1024", owner="web-1"))
    assert readmit(server, "a") == "deleted; ReplicaSet/web-1 creates another"
    assert not server.pods


def test_nothing_is_changed_while_the_webhook_does_not_answer(readmit: Readmit) -> None:
    server = Server(pod("a", gpu_mem="1024"), webhook=False)
    before = server.pods["a"]
    with pytest.raises(CommandFailed, match="does not answer yet; nothing was changed"):
        readmit(server, "a")
    assert server.pods["a"] is before


def held(name: str) -> Pod:
    found = pod(name, gpu_mem="1024")
    found["metadata"]["finalizers"] = ["kueue.x-k8s.io/managed"]
    return found


def test_a_pod_with_a_finalizer_is_created_again_when_it_is_gone(readmit: Readmit, clock: Clock) -> None:
    server = Server(held("a"))
    clock.planned[20.0] = lambda: server.pods.pop("a")
    assert readmit(server, "a") == "created again"
    assert server.pods["a"]["metadata"]["uid"] == "new"


def test_a_finalizer_that_stays_is_named_and_the_manifest_is_kept(
    readmit: Readmit, said: list[str], tmp_path: Path
) -> None:
    server = Server(held("a"))
    with pytest.raises(CommandFailed, match=r"within 60 s: finalizers hold the old pod: kueue\.x-k8s\.io/managed"):
        readmit(server, "a")
    ((kept, name),) = saved_manifests.left(tmp_path, "team")
    assert name == "team/a"
    assert f"kubectl create -f {kept}" in said[0]
    assert list(saved_manifests.left(tmp_path, "other")) == []


def test_the_old_pod_counts_for_the_new_one_in_a_full_quota(readmit: Readmit, clock: Clock) -> None:
    server = Server(pod("a", gpu_mem="1024"))
    server.quota = FULL.format("pods", 4)
    clock.planned[3.0] = lambda: setattr(server, "counted", False)  # the quota's controller is behind
    assert readmit(server, "a") == "created again"


@pytest.mark.parametrize(
    ("message", "lacking"),
    [
        (FULL.format("pods", 4), []),
        (FULL.format("pods", 3), ["pods"]),
        (FULL.format("requests.vgpu.io/gpu-mem", 4), []),
        (FULL.format("requests.vgpu.io/slice", 4), ["requests.vgpu.io/slice"]),
        (
            "exceeded quota: q, requested: cpu=1,memory=1Gi, used: cpu=3500m,memory=2Gi, limited: cpu=4,memory=2047Mi",
            ["memory"],
        ),
        ("exceeded quota: q, requested: pods=1, used: pods=18k, limited: pods=18000", []),
    ],
)
def test_what_a_quota_lacks_when_the_old_pod_is_gone(message: str, lacking: list[str]) -> None:
    assert quota_refusals.is_refusal(message)
    assert quota_refusals.lacking(message) == lacking


def test_nothing_is_changed_where_a_quota_has_no_room_for_the_new_pod(readmit: Readmit, tmp_path: Path) -> None:
    server = Server(pod("a", gpu_mem="1024"))
    server.quota, before = FULL.format("pods", 3), server.pods["a"]
    with pytest.raises(CommandFailed, match="leaves too little pods for its successor; nothing was changed"):
        readmit(server, "a")
    assert server.pods["a"] is before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["DELETE before", "DELETE after", "POST before", "POST after"])
def test_a_lost_connection_loses_no_pod(readmit: Readmit, moment: str, tmp_path: Path) -> None:
    server = Server(pod("a", gpu_mem="1024"))
    server.failures = {moment: CommandFailed("reset by peer", NO_ANSWER)}
    assert readmit(server, "a") == "created again"
    assert server.pods["a"]["metadata"]["uid"] == "new"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["DELETE before", "DELETE after", "POST before", "POST after"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), CommandFailed("the policy refuses it", NOT_ALLOWED)])
def test_the_manifest_of_a_pod_that_may_be_lost_is_kept_and_named(
    readmit: Readmit, moment: str, failure: BaseException, tmp_path: Path, said: list[str]
) -> None:
    server = Server(pod("a", gpu_mem="1024"))
    server.failures = {moment: failure}
    with pytest.raises(type(failure)):
        readmit(server, "a")
    is_refused_deletion = moment.startswith("DELETE") and isinstance(failure, CommandFailed)
    assert [str(path) in said[0] for path, _ in saved_manifests.left(tmp_path, None)] == [True] * (
        not is_refused_deletion
    )


def test_nothing_is_changed_where_the_manifest_cannot_be_saved(clock: Clock, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    server = Server(pod("a", gpu_mem="1024"))
    keep = partial(saved_manifests.kept, tmp_path / "file", say=print)
    with pytest.raises(CommandFailed, match=r"cannot be saved: .*; nothing was changed"):
        readmission.readmit(server, server.pods["a"], keep, clock.host, 60)
    assert "a" in server.pods


def test_another_pod_of_the_name_is_not_taken_for_the_new_one(readmit: Readmit, clock: Clock) -> None:
    server = Server(held("a"))
    clock.planned[1.0] = lambda: server.pods.update(a={**pod("a"), "metadata": {"name": "a", "uid": "others"}})
    with pytest.raises(CommandFailed, match="another pod of its name was created meanwhile"):
        readmit(server, "a")


def test_manifests_of_clusters_have_folders_of_their_own(tmp_path: Path) -> None:
    found = {saved_manifests.folder({}, tmp_path, f"https://{host}/x") for host in ("a:6443", "b:6443", "[::1]")}
    assert len(found) == 3
    assert {path.parent for path in found} == {tmp_path / ".local/state/vgpu/readmit"}
    chosen = saved_manifests.folder({"XDG_STATE_HOME": "/state"}, tmp_path, "https://a")
    assert chosen == Path("/state/vgpu/readmit/a")


def test_a_later_run_names_the_manifests_that_an_earlier_run_left(server: RestServer, tmp_path: Path) -> None:
    folder = saved_manifests.folder({}, tmp_path, server.url)
    with pytest.raises(KeyboardInterrupt), saved_manifests.kept(folder, pod("a"), "uid-a", print):
        raise KeyboardInterrupt
    server.answers["GET /api/v1/namespaces/team/pods"] = (200, {"items": [], "metadata": {}})
    server.answers["GET /api/v1/namespaces/other/pods"] = (200, {"items": [], "metadata": {}})
    config = str(kubeconfig(tmp_path, server.url, {"token": "t"}))
    code, output = run("readmit", "--kubeconfig", config, home=tmp_path)
    assert (code, f"kubectl create -f {folder}/uid-a.json" in output) == (1, True), output
    assert "no pod waits" not in output
    code, output = run("readmit", "-n", "other", "--kubeconfig", config, home=tmp_path)
    assert (code, output) == (0, "no pod waits for the webhook\n")


@pytest.mark.heavy
def test_only_the_named_pods_are_created_again(server: RestServer, tmp_path: Path) -> None:
    waiting = [pod(name, gpu_mem="1024") for name in ("a", "b")]
    server.answers["GET /api/v1/namespaces/team/pods"] = (200, {"items": waiting, "metadata": {}})
    config = str(kubeconfig(tmp_path, server.url, {"token": "t"}))
    for name in ("b", "team/b", "pod/team/b"):
        code, output = run("readmit", name, "--dry-run", "--kubeconfig", config, home=tmp_path)
        assert (code, output) == (0, "pod/b (team) is not admitted\n")
    code, output = run("readmit", "a", "none", "--kubeconfig", config, home=tmp_path)
    assert (code, {method for method, *_ in server.requests}) == (3, {"GET"})
    said = "pod team/none: does not exist, or does not wait for the webhook; see vgpu explain. Nothing was changed"
    assert output == f"vgpu readmit: {said}\n"


@pytest.mark.parametrize(
    ("arguments", "said"), [(("-A", "a"), "-A: give it without POD"), (("A B",), "'A B' is no name of a pod")]
)
def test_names_that_readmit_does_not_take(
    server: RestServer, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    config = str(kubeconfig(tmp_path, server.url, {"token": "t"}))
    code, output = run("readmit", *arguments, "--kubeconfig", config, home=tmp_path)
    assert (code, server.requests, output.startswith(f"vgpu readmit: {said}")) == (2, [], True), output


def test_signals_that_end_a_program_interrupt_like_ctrl_c() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), readmit_command.ended_like_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
