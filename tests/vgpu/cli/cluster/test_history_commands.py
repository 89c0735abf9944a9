"""`vgpu usage` and `vgpu rightsize`: their namespaces, and an owner that is none, or that has no measured pod."""

import pytest

from tests.vgpu.cli.cluster.conftest import Server, run

NOTHING = {"items": [], "since": "", "until": "", "itemsLeftOut": 0, "complete": True}


@pytest.mark.parametrize("owner", ["garbage", "Deployment/", "/train", "Deployment/train/main", "A B/c"])
def test_what_is_no_owner_is_wrong_usage(server: Server, owner: str) -> None:
    code, output = run("rightsize", owner, "--server", server.url)
    assert (code, server.requests) == (2, []), output
    assert f"{owner!r} is not KIND/NAME, such as Deployment/train" in output


@pytest.mark.parametrize("options", [(), ("--worst",), ("-o", "json"), ("-n", "team")])
def test_an_owner_of_which_nothing_was_measured_is_not_found(server: Server, options: tuple[str, ...]) -> None:
    server.answers["GET /api/v1/rightsize"] = (200, NOTHING)
    code, output = run("rightsize", "Deployment/nosuch", *options, "--server", server.url)
    assert code == 3, output
    where = " in namespace team" if "team" in options else ""
    assert output.startswith(f"vgpu rightsize: Deployment/nosuch: no pod of it was measured since 7d{where}; ")


def test_without_an_owner_nothing_measured_is_an_answer(server: Server) -> None:
    server.answers["GET /api/v1/rightsize"] = (200, NOTHING)
    assert run("rightsize", "--server", server.url) == (0, "nothing was measured\n")


@pytest.mark.heavy
@pytest.mark.parametrize("command", ["usage", "rightsize"])
def test_without_a_namespace_all_of_them_are_asked_for_and_the_help_says_so(server: Server, command: str) -> None:
    """The help named the kubeconfig's namespace as the default, which these commands do not use."""
    server.answers[f"GET /api/v1/{command}"] = (200, NOTHING)
    run(command, "--server", server.url)
    assert "namespace" not in server.requests[0][2]
    code, output = run(command, "--help")
    assert (code, "only this namespace (default: all that" in " ".join(output.split())) == (0, True), output
