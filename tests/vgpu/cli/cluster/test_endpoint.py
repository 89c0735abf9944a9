"""Which server a command asks, with which token, and how failures end."""

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vgpu.cli.cluster.conftest import Server, run
from vgpu.cli.cluster import describe, top_view
from vgpu.cli.cluster.connection import server_url
from vgpu.cli.cluster.connection.endpoint import ServerChoice, api_server, find
from vgpu.cli.cluster.connection.rest import Rest
from vgpu.cli.cluster.connection.rest_endpoint import RestEndpoint
from vgpu.cli.failure import CommandFailed
from vgpu.domain import names

PROXY = "/api/v1/namespaces/vgpu-system/services/https:vgpu-admin:9871/proxy/api/v1/nodes"


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "none", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(json.dumps(config))
    return folder / "config"


def test_through_the_api_server_the_token_is_in_a_header_that_it_passes_on(server: Server, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, server.url, {"token": "secret"})
    assert run("get", "nodes", KUBECONFIG=str(file))[0] == 0
    ((_, path, _, headers, _),) = server.requests
    assert path == PROXY
    assert (headers["Authorization"], headers["X-Vgpu-Token"]) == ("Bearer secret", "secret")


def test_the_namespace_is_the_contexts(server: Server, tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, server.url, {"token": "secret"})
    for arguments, expected in (
        (["get", "pods"], ["team"]),
        (["get", "pods", "-n", "x"], ["x"]),
        (["get", "pods", "-A"], None),
    ):
        run(*arguments, "--kubeconfig", str(file))
        assert server.requests[-1][2].get("namespace") == expected


@pytest.mark.parametrize("kind", ["pods", "pending"])
def test_a_list_of_one_namespace_says_so_unless_it_was_asked_for(server: Server, kind: str) -> None:
    said = "only of namespace default; -A shows every namespace\n"
    server.answers[f"GET /api/v1/{kind}"] = (200, {"items": [], "nextCursor": ""})
    code, output = run("get", kind, "--server", server.url)
    assert (code, output.startswith(f"{said}no pod")) == (0, True), output
    for arguments in (["-n", "default"], ["-A"], ["-o", "json"], ["-o", "name"]):
        assert said not in run("get", kind, *arguments, "--server", server.url)[1]
    code, output = run("get", kind, "none", "--server", server.url)
    assert (code, "none: not found in namespace default" in output) == (3, True), output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explain", "A B"), "'A B' is no name of a pod"),
        (("explain", ""), "'' is no name of a pod"),
        (("explain", "-n", "default/x", "train"), "'default/x' is no name of a namespace"),
        (("explain", "a/b/c"), "'a/b' is no name of a namespace"),
        (("describe", "pod", "A B"), "'A B' is no name of a pod"),
        (("describe", "node", "a/b"), "'a/b' is no name of a node"),
        (("describe", "gpu", ""), "an empty name of a card: give a UUID or NODE/INDEX"),
    ],
)
def test_what_can_be_no_name_is_wrong_usage(server: Server, arguments: tuple[str, ...], said: str) -> None:
    assert run(*arguments, "--server", server.url) == (2, f"vgpu {arguments[0]}: {said}\n")


def test_a_pod_is_described_by_its_namespace_and_name(server: Server) -> None:
    for arguments in (("train",), ("default/train",), ("pod/default/train",)):
        assert run("describe", "pod", *arguments, "--server", server.url)[0] == 0


def test_a_server_that_is_not_the_admin_rest_is_told_apart_from_a_missing_object(server: Server) -> None:
    server.answers["GET /api/v1/gpus"] = (404, "Not Found")  # the extender's port for kube-scheduler
    code, output = run("get", "gpus", "--server", server.url)
    said = f"{server.url} is not the admin REST: it answers 404 Not Found. The admin REST has port 9871; see --server"
    assert (code, output) == (5, f"vgpu get: {said}\n")


def test_an_api_server_in_place_of_the_admin_rest_is_named_with_the_next_step(server: Server) -> None:
    server.answers["GET /api/v1/gpus"] = (404, {"kind": "Status", "message": "could not find the requested resource"})
    code, output = run("get", "gpus", "--server", server.url)
    assert code == 5
    assert f"{server.url} is a Kubernetes API server and not the admin REST" in output
    assert "leave out --server" in output


@pytest.mark.parametrize("kind", ["gpus", "nodes"])
def test_a_namespace_of_what_is_in_no_namespace_is_wrong_usage(server: Server, kind: str) -> None:
    said = f"vgpu get: --namespace: {kind} are in no namespace; leave it out\n"
    assert run("get", kind, "-n", "x", "--server", server.url) == (2, said)


@pytest.mark.parametrize(
    ("named", "cores", "requested", "said"),
    [
        ("burst", 30, "8 GiB, 30 %", "burst"),
        ("", 30, "8 GiB, 30 %", "fixed (the default with gpu-cores)"),
        ("", 0, "50 % of the memory", "burst (the default without gpu-cores)"),
        ("", 30, "8 GiB, 30 %; 1 GiB", "default: fixed with gpu-cores, else burst"),
    ],
)
def test_the_compute_policy_that_applies_is_named(named: str, cores: int, requested: str, said: str) -> None:
    row = {"computePolicy": named, "cores": cores, "requested": requested}
    assert describe._compute_policy(row) == said


@pytest.mark.parametrize(
    ("names", "found"), [(("gpus", "node-1/0"), "GPU-00000000-aaaa"), (("nodes", "node-1"), "node-1")]
)
def test_a_name_that_is_missing_beside_one_that_is_found_is_named(
    server: Server, names: tuple[str, ...], found: str
) -> None:
    code, output = run("get", *names, "none", "-o", "wide", "--server", server.url)
    assert (code, found in output, output.splitlines()[-1]) == (3, True, "vgpu get: none: not found"), output


def test_a_token_of_a_credential_plugin(server: Server, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text('#!/bin/sh\necho "{\\"status\\": {\\"token\\": \\"from-$NAME\\"}}"\n')
    plugin.chmod(0o755)
    user = {
        "exec": {
            "command": str(plugin),
            "apiVersion": "client.authentication.k8s.io/v1",
            "env": [{"name": "NAME", "value": "me"}],
        }
    }
    assert run("get", "nodes", KUBECONFIG=str(kubeconfig(tmp_path, server.url, user)), PATH="/bin:/usr/bin")[0] == 0
    assert server.requests[0][3]["X-Vgpu-Token"] == "from-me"


def test_a_user_with_a_certificate_gets_a_token_for_the_admin_rest_only(server: Server, tmp_path: Path) -> None:
    server.answers["POST /api/v1/namespaces/vgpu-system/serviceaccounts/vgpu-admin/token"] = (
        201,
        {"status": {"token": "minted"}},
    )
    user = {
        "client-certificate-data": base64.b64encode(b"c").decode(),
        "client-key-data": base64.b64encode(b"k").decode(),
    }
    assert run("get", "nodes", KUBECONFIG=str(kubeconfig(tmp_path, server.url, user)))[0] == 0
    minted, asked = server.requests
    assert minted[4]["spec"] == {"audiences": ["admin.vgpu.io"], "expirationSeconds": 600}
    assert asked[3]["X-Vgpu-Token"] == "minted"


def test_a_certificate_whose_user_may_not_create_tokens(server: Server, tmp_path: Path) -> None:
    server.answers["POST /api/v1/namespaces/vgpu-system/serviceaccounts/vgpu-admin/token"] = (
        403,
        {"message": "forbidden"},
    )
    user = {"client-certificate-data": base64.b64encode(b"c").decode()}
    code, output = run("get", "nodes", KUBECONFIG=str(kubeconfig(tmp_path, server.url, user)))
    assert (code, "give --token" in output) == (4, True)
    assert "the right to create tokens of that account (create serviceaccounts/token in namespace" in output


def test_server_and_token_from_the_environment(server: Server) -> None:
    assert run("get", "nodes", VGPU_SERVER=server.url, VGPU_TOKEN="t")[0] == 0
    assert server.requests[0][1] == "/api/v1/nodes"
    assert server.requests[0][3]["Authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("url", "is_loopback"),
    [
        ("http://localhost:9871", True),
        ("http://LOCALHOST", True),
        ("http://127.0.0.1:9871/x", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:9871", True),
        ("http://[::ffff:127.0.0.1]", True),
        ("http://[::ffff:10.0.0.1]", False),
        ("http://[::2]", False),
        ("http://10.0.0.1", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("http://example.org/127.0.0.1", False),
    ],
)
def test_what_names_this_machine_itself(url: str, is_loopback: bool) -> None:
    assert server_url.is_loopback(url) == is_loopback


def test_a_token_for_this_machine_passes_no_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert run("get", "nodes", "--server", server.url, "--token", "t")[0] == 0


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, {"detail": "the token is wrong"}, 4, "the token is wrong"),
        (403, {"detail": "ann may not list gpunodes.vgpu.io"}, 4, "ann may not"),
        (403, {"kind": "Status", "message": 'services "https:vgpu-admin" is forbidden'}, 4, "is forbidden"),
        (404, {"detail": "no"}, 3, "no"),
        (
            422,
            {"detail": "sort: x", "errors": [{"field": "sort", "detail": "x"}, {"field": "b", "detail": "y"}]},
            2,
            "--sort-by: x\n  b: y",
        ),
        (422, {"detail": "two", "errors": [{"field": "sort", "detail": "x"}]}, 2, "two\n  --sort-by: x"),
        (503, {"detail": "not ready"}, 5, "not ready"),
        (500, "oops", 5, "500"),
        (302, "", 5, "302"),
        (200, "<html>", 5, "no JSON answer"),
    ],
)
def test_failures(server: Server, status: int, body: Any, code: int, words: str) -> None:
    server.answers["GET /api/v1/nodes"] = (status, body)
    ended, output = run("get", "nodes", "--server", server.url)
    assert (ended, words in output) == (code, True), output


def test_without_an_answer_the_next_step_is_named(server: Server, tmp_path: Path) -> None:
    """Without a kubeconfig `make run` is asked, which tests of this machine may run: so only the advice is tested."""
    assert "set KUBECONFIG" in find(ServerChoice(), {}, tmp_path).endpoint.advice
    asked = RestEndpoint(f"{server.url}/api/v1", name="the admin REST", advice="see whether the extender runs")
    server.answers["GET /api/v1/nodes"] = (503, {"message": "no endpoints available"})
    with pytest.raises(CommandFailed, match="no endpoints available\n  see whether the extender runs"):
        Rest(asked).get("/nodes")
    gone = replace(asked, url="http://127.0.0.1:9/api/v1")
    with pytest.raises(CommandFailed, match=r"does not answer: .*refused\n  see whether the extender runs"):
        Rest(gone).get("/nodes")


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "words"),
    [
        (["--server", "http://127.0.0.1:9"], {}, 5, "does not answer"),
        (["--server", "http://127.0.0.1:9", "--token", "a\nb"], {}, 2, "characters that no header can have"),
        ([], {"KUBECONFIG": "{folder}/number"}, 2, "there is no context"),
        (["--server", "ftp://x"], {}, 2, "http or https"),
        (["--server", "http://example.org", "--token", "t"], {}, 2, "not sent without TLS"),
        (["--server", "http://localhost.example.org", "--token", "t"], {}, 2, "not sent without TLS"),
        (["--server", "http://127.0.0.1.example.org", "--token", "t"], {}, 2, "not sent without TLS"),
        (["--server", "http://127.0.0.1@example.org", "--token", "t"], {}, 2, "URL of a host"),
        (["--server", "http://[::1].example.org", "--token", "t"], {}, 2, "URL of a host"),
        (["--server", "http://[::1", "--token", "t"], {}, 2, "URL of a host"),
        (["--server", "http://h:port"], {}, 2, "URL of a host"),
        (["--server", "http://"], {}, 2, "URL of a host"),
        (["--token", "t"], {"KUBECONFIG": "{folder}/clear"}, 2, "not sent without TLS"),
        ([], {"KUBECONFIG": "{folder}/clear-with-token"}, 2, "not sent without TLS"),
        (["--context", "c"], {}, 2, "no kubeconfig"),
        ([], {"KUBECONFIG": "{folder}/broken"}, 2, "cannot be read"),
        (["--context", "none"], {"KUBECONFIG": "{folder}/config"}, 2, "known: here, there"),
        (["--context", "there"], {"KUBECONFIG": "{folder}/config"}, 2, "has no server"),
    ],
)
def test_what_cannot_be_used(
    tmp_path: Path, arguments: list[str], environment: dict[str, Any], code: int, words: str
) -> None:
    kubeconfig(tmp_path, "http://127.0.0.1:9", {})
    (tmp_path / "broken").write_text("a: [")
    (tmp_path / "number").write_text("contexts: 5")
    for name, user in (("clear", {}), ("clear-with-token", {"token": "t"})):
        (tmp_path / name).mkdir()
        kubeconfig(tmp_path / name, "http://api.example.org", user).rename(tmp_path / "moved")
        (tmp_path / name).rmdir()
        (tmp_path / "moved").rename(tmp_path / name)
    ended, output = run(
        "get",
        "nodes",
        *arguments,
        home=tmp_path / "home",
        **{k: v.format(folder=tmp_path) for k, v in environment.items()},
    )
    assert (ended, words in output) == (code, True), output


def replaced(found: Any) -> Iterator[Any]:
    """Yield copies of a document, in each of which one value is of another type."""
    yield from (5, [5], "\0", {"a": 1}, None, "\ud800", "x\ny")
    if isinstance(found, dict):
        yield from ({**found, key: value} for key in found for value in replaced(found[key]))
    elif isinstance(found, list):
        yield from ([*found[:n], value, *found[n + 1 :]] for n in range(len(found)) for value in replaced(found[n]))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "user",
    [
        {"token": "t"},
        {"tokenFile": "config"},
        {"client-certificate-data": "Yw==", "client-key": "config"},
        {"exec": {"command": "true", "args": ["a"], "env": [{"name": "A", "value": "b"}]}},
        {"exec": {"command": "echo", "args": ["[]"]}},
    ],
)
def test_a_kubeconfig_of_wrong_types_is_refused_with_a_message_or_ignored(user: dict[str, Any], tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:9", user)
    for broken in replaced(json.loads(file.read_text())):
        file.write_text(json.dumps(broken))
        for ask in (find, api_server):
            with contextlib.suppress(CommandFailed):
                ask(ServerChoice(kubeconfig=file), {"PATH": "/bin:/usr/bin"}, tmp_path)


def test_without_anything_this_machine_is_asked(tmp_path: Path) -> None:
    assert find(ServerChoice(), {}, tmp_path).endpoint.url == "http://127.0.0.1:9871/api/v1"
    with pytest.raises(CommandFailed, match="no kubeconfig"):
        find(ServerChoice(context="x"), {}, tmp_path)


@pytest.mark.parametrize("named", ["/no/such", "/no/such:/nor/this", "/"])
def test_a_kubeconfig_of_the_environment_that_does_not_exist_is_refused(named: str) -> None:
    """Another cluster was shown, that of `make run` on this machine."""
    code, output = run("get", "gpus", KUBECONFIG=named)
    assert (code, f"{named.partition(':')[0]} cannot be read" in output) == (2, True), output


def test_a_server_without_a_scheme_that_speaks_no_tls_is_named(server: Server) -> None:
    code, output = run("get", "gpus", "--server", server.url.removeprefix("http://"))
    assert (code, f"without TLS: {server.url}" in output) == (5, True), output


@pytest.mark.parametrize(
    ("server_url", "said"),
    [
        ("http://127.0.0.1:9", "see whether the admin REST listens there (its port is 9871), or leave out --server"),
        ("https{rest}", "it does not speak TLS; without TLS: http{rest}"),
        ("127.0.0.1:9", "--server without http:// or https:// is https; without TLS: http://127.0.0.1:9"),
    ],
)
def test_a_server_that_does_not_answer_is_told_with_the_next_step(server: Server, server_url: str, said: str) -> None:
    rest = server.url.removeprefix("http")
    code, output = run("get", "nodes", "--server", server_url.format(rest=rest))
    assert (code, output.splitlines()[1].strip()) == (5, said.format(rest=rest)), output


def test_a_server_of_the_environment_that_does_not_answer_names_the_variable() -> None:
    assert "or leave out VGPU_SERVER" in run("get", "nodes", VGPU_SERVER="http://127.0.0.1:9")[1]


def test_an_api_server_that_is_down_is_no_word_about_the_extender(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:9", {})
    code, output = run("get", "nodes", KUBECONFIG=str(config))
    assert (code, "the API server itself does not answer: see kubectl cluster-info" in output) == (5, True), output
    assert "extender" not in output


@pytest.mark.parametrize("path", ["/", "/api/v1", "/api/v1/"])
def test_a_server_is_named_with_the_path_of_the_rest_or_without(server: Server, path: str) -> None:
    assert run("get", "nodes", "--server", server.url + path)[0] == 0
    assert server.requests[-1][1] == "/api/v1/nodes"


@pytest.mark.parametrize("command", ["explain waits", "describe pod train"])
def test_only_formats_that_are_written_are_offered(server: Server, command: str) -> None:
    for form in ("csv", "name"):
        code, output = run(*command.split(), "-o", form, "--server", server.url)
        assert (
            code,
            f"'{form}' is not one of 'table', 'wide', 'json'" in " ".join(output.replace("│", " ").split()),
        ) == (
            2,
            True,
        )


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("pod train", {"pod", "rightSizes", "gang"}), ("node node-1", {"node", "gpus"}), ("gpu node-1/0", {"gpu"}),
    ],
)  # fmt: skip
def test_describe_writes_documents(server: Server, typed: str, keys: set[str]) -> None:
    code, output = run("describe", *typed.split(), "-o", "json", "--server", server.url)
    assert (code, json.loads(output).keys()) == (0, keys)


def test_a_cluster_without_vgpushare_is_named(server: Server) -> None:
    server.answers["GET /api/v1/gpus"] = (404, {"kind": "Status", "message": 'services "vgpu-admin" not found'})
    code, output = run("get", "gpus", "--server", server.url)
    assert (code, "vgpushare is not installed in this namespace" in output) == (5, True), output


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            403,
            {"kind": "Status", "message": 'services "https:vgpu-admin:9871" is forbidden: User "ann" cannot get'},
            "ask an administrator for the Role vgpu-admin-client in namespace gpus (docs/admin.md, Rights)",
        ),
        (403, {"detail": "ann may not list gpunodes.vgpu.io"}, "ask an administrator for this right (docs/admin.md"),
        (401, {"kind": "Status", "message": "Unauthorized"}, "log in again, or see kubectl auth whoami"),
    ],
)
def test_a_missing_right_is_named_with_whom_to_ask(
    server: Server, tmp_path: Path, status: int, body: Any, said: str
) -> None:
    server.answers["GET /api/v1/nodes"] = (status, body)
    config = kubeconfig(tmp_path, server.url, {"token": "t"})
    code, output = run("get", "nodes", "--admin-namespace", "gpus", KUBECONFIG=str(config))
    assert code == 4
    assert output.startswith(f"vgpu get: {body.get('message') or body['detail']}\n  "), output
    assert said in output.splitlines()[1]


def test_the_role_that_is_named_is_in_the_manifests() -> None:
    assert f"kind: Role\nmetadata: {{name: {names.ADMIN_CLIENT_ROLE}, namespace: {names.NAMESPACE}}}" in Path(
        "manifests/base/admin.yaml"
    ).read_text(encoding="utf-8")


def test_completion_scripts() -> None:
    for shell in ("bash", "zsh", "fish"):
        code, output = run("completion", shell)
        assert (code, "_VGPU_COMPLETE" in output) == (0, True)
    assert run("completion", "csh")[0] == 2


def test_a_live_list_applies_events_and_reads_again_after_overflow(server: Server) -> None:
    gone = {"type": "DELETED", "object": {"name": "node-1"}}
    server.answers["GET /api/v1/events"] = (
        200, f"retry: 2000\n\n: heartbeat\n\nevent: node\ndata: {json.dumps(gone)}\n\nevent: overflow\ndata: {{}}\n\n",
    )  # fmt: skip
    code, output = run("top", "nodes", "-c", "4", "--server", server.url)
    assert code == 0
    tables = output.split("NAME")[1:]
    assert ["node-1" in table for table in tables] == [True, True, False, True]


def test_a_list_of_many_pages_is_read_whole(server: Server) -> None:
    first = {"items": server.answers["GET /api/v1/nodes"][1]["items"][:1], "nextCursor": "c"}
    answers = iter([(200, first), (200, {**first, "nextCursor": ""})])

    class Paged(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            return next(answers) if key == "GET /api/v1/nodes" else super().get(key, default)

    server.answers = Paged()
    assert run("get", "nodes", "-o", "name", "--server", server.url)[1] == "node/node-1\n" * 2
    assert [request[2].get("cursor") for request in server.requests] == [None, ["c"]]


def test_names_are_accepted_as_they_are_written_by_output_name(server: Server) -> None:
    written = run("get", "gpus", "-o", "name", "--server", server.url)[1].split()
    assert run("get", "gpus", written[0], "-o", "name", "--server", server.url) == (0, f"{written[0]}\n")
    code, output = run("cordon", written[0], "--server", server.url)
    assert (code, output.startswith(f"{written[0]} (node-1/0) cordoned")) == (0, True), output
    run("explain", "pod/team/train", "--server", server.url)
    assert server.requests[-1][1] == "/api/v1/pods/team/train/explain"


@pytest.mark.parametrize(
    "typed",
    [
        "explain pod/waits", "explain pod waits", "explain po/waits", "explain pods/default/waits", "explain waits",
        "explain -n default po waits", "explain pod/waits -n default",
    ],
)  # fmt: skip
def test_a_pod_is_explained_by_each_form_of_its_name(server: Server, typed: str) -> None:
    """`pod/waits` was read as the pod `waits` of a namespace `pod`."""
    assert run(*typed.split(), "--server", server.url)[0] == 0
    assert server.requests[-1][1] == "/api/v1/pods/default/waits/explain"


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("describe pod/train", "/api/v1/pods/default/train"),
        ("describe po train", "/api/v1/pods/default/train"),
        ("describe pod pods/default/train", "/api/v1/pods/default/train"),
        ("describe node/node-1", "/api/v1/nodes/node-1"),
        ("describe no node/node-1", "/api/v1/nodes/node-1"),
        ("describe gpu/GPU-00000000-aaaa", "/api/v1/gpus"),
        ("describe gpu gpu/node-1/0", "/api/v1/gpus"),
        ("get pods pod/default/train", "/api/v1/pods"),
        ("get pods default/train", "/api/v1/pods"),
        ("get po/train", "/api/v1/pods"),
        ("get po train", "/api/v1/pods"),
        ("get no node/node-1", "/api/v1/nodes"),
        ("get gpus gpus/node-1/0", "/api/v1/gpus"),
        ("get gpu/node-1/0", "/api/v1/gpus"),
        ("cordon gpu node-1/0", "/api/v1/gpus"),
        ("inspect node/node-1", "/api/v1/gpus"),
    ],
)
def test_every_form_of_a_name_that_is_typed_or_printed_is_taken(server: Server, typed: str, asked: str) -> None:
    """`describe node` refused what `get nodes -o name` had printed."""
    code, output = run(*typed.split(), "--server", server.url)
    assert code == 0, output
    assert asked in [request[1] for request in server.requests]


@pytest.mark.heavy
def test_each_name_that_output_name_prints_is_taken_by_get_and_describe(server: Server) -> None:
    for kind in ("gpus", "nodes", "pods", "pending"):
        printed = run("get", kind, "-A", "-o", "name", "--server", server.url)[1].split()
        assert printed
        for name in (name for name in printed if "?" not in name):  # the API server has no pod of that name
            assert name in run("get", kind, name, "-o", "name", "--server", server.url)[1].split()
            assert name in run("get", name, "-o", "name", "--server", server.url)[1].split()


def test_pods_of_several_namespaces_are_listed_by_name(server: Server) -> None:
    run("get", "pods", "a/x", "b/y", "z", "-n", "c", "--server", server.url)
    (request,) = server.requests
    assert (request[2]["namespace"], request[2]["name"]) == (["a", "b", "c"], ["x", "y", "z"])
    code, output = run("get", "pods", "other/train", "--server", server.url)
    assert (code, output) == (3, "vgpu get: other/train: not found\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("get pods node/node-1", "node/node-1: is none of the pods; list one kind"),
        ("describe pod", "name one pod to describe"),
        ("describe pod/a b", "name one pod to describe"),
        ("explain a b", "name one pod to explain"),
        ("get bogus", "'bogus' is not one of gpus, nodes, pods, pending"),
        ("get pod/", "'pod/' is not one of gpus, nodes, pods, pending"),
        ("describe bogus x", "'bogus' is not one of gpu, node, pod, group, nor one of them with /NAME"),
    ],
)
def test_what_names_nothing_or_several_kinds_is_wrong_usage(server: Server, typed: str, said: str) -> None:
    code, output = run(*typed.split(), "--server", server.url)
    assert (code, said in " ".join(output.replace("│", " ").split())) == (2, True), output


def test_top_of_kubectls_plugin_is_about_the_cluster(server: Server) -> None:
    code, output = run("top", "--once", "--server", server.url, is_plugin=True)
    assert (code, output) == run("top", "pods", "--once", "--server", server.url)
    assert "No program runs under limits" not in output


@pytest.mark.parametrize("kind", ["gpus", "nodes", "pods", "pending"])
def test_top_of_the_cluster_writes_a_line_of_json_for_each_sample(server: Server, kind: str) -> None:
    """It wrote its table, whatever -o said."""
    code, output = run("top", kind, "--once", "-o", "json", "--server", server.url)
    assert (code, output.count("\n")) == (0, 1), output
    listed = run("get", kind, "-A", "-o", "json", "--server", server.url)[1]
    shown, items = (sorted(json.loads(text)["items"], key=str) for text in (output, listed))
    assert shown == items


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("top gpus --once --refresh 3", "--refresh: is for the programs of this machine"),
        ("top gpus --once --state /tmp", "--state: is for the programs of this machine"),
        ("simulate -f tests/vgpu/cli/cluster/pod.yaml --node-policy spread", "--node-policy: the server has its own"),
        ("simulate -f tests/vgpu/cli/cluster/pod.yaml --gpu-policy spread", "--gpu-policy: the server has its own"),
        ("simulate --cluster x.json --context y", "--cluster: a file is no server"),
        ("version -o json", "give --server too"),
        ("version http://127.0.0.1:1", "give --server too"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(server: Server, command: str, words: str) -> None:
    code, output = run(*command.split(), VGPU_SERVER=server.url)
    assert (code, words in output) == (2, True), output


def test_top_of_one_namespace(server: Server) -> None:
    assert run("top", "pods", "-n", "team", "--once", "--server", server.url)[0] == 0
    assert [request[2]["namespace"] for request in server.requests if request[1] == "/api/v1/pods"] == [["team"]]
    for command in (("top", "gpus"), ("top",)):
        code, output = run(*command, "-n", "team", "--once", "--server", server.url)
        assert (code, "belong to no namespace" in output) == (2, True), output
        code, output = run(*command, "-A", "--once", "--server", server.url)
        assert (code, "--all-namespaces: " in output, "belong to no namespace" in output) == (2, True, True), output


def test_top_of_all_namespaces_is_top_without_one(server: Server) -> None:
    asked = ("--once", "--server", server.url)
    assert run("top", "pods", "-A", *asked) == run("top", "pods", *asked)
    code, output = run("top", "pods", "-A", "-n", "team", *asked)
    assert (code, "not both" in output) == (2, True), output


def test_top_of_pods_begins_with_those_that_use_most_and_has_none_that_ended() -> None:
    def pod(name: str, status: str, *used: float | None) -> dict[str, Any]:
        return {"name": name, "status": status, "gpus": [{"usedCores": cores} for cores in used]}

    pods = [
        pod("a", "Running", 10),
        pod("b", "Ended", 90),
        pod("c", "Running", 30, 30),
        pod("d", "Pending"),
        pod("e", "Running", None),
    ]
    assert [shown["name"] for shown in top_view.busiest_first(pods)] == ["c", "a", "d", "e"]


def test_a_low_window_says_how_many_lines_it_has_no_room_for() -> None:
    text = "".join(f"line {n}\n" for n in range(10))
    assert top_view.fitting(text, 10) == text
    assert top_view.fitting(text, 4).splitlines() == [
        "line 0",
        "line 1",
        "line 2",
        "7 more lines; a taller window has room for them",
    ]


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("[::1]:8443", "https://[::1]:8443"),
        ("http://[::1]:9871", "http://[::1]:9871"),
        ("https://[fd00::1]", "https://[fd00::1]"),
        ("https://[::ffff:10.0.0.1]:443/", "https://[::ffff:10.0.0.1]:443"),
    ],
)
def test_a_server_may_have_an_ipv6_address(server: str, url: str, tmp_path: Path) -> None:
    found = find(ServerChoice(server=server), {}, tmp_path)
    assert found.endpoint.url.startswith(url)


@pytest.mark.parametrize("server", ["::1:8443", "http://::1", "https://[::1", "https://[::g]:1"])
def test_an_ipv6_address_without_brackets_is_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="must be an http or https URL"):
        find(ServerChoice(server=server), {}, tmp_path)
