"""What `vgpu get groups` and `describe group` ask the server for."""

import pytest

from tests.vgpu.cli.cluster import canned
from tests.vgpu.cli.cluster.conftest import Server, run

GROUPS = f"GET {canned.V1}/groups"


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ((), {"namespace": ["default"]}),
        (("-n", "team"), {"namespace": ["team"]}),
        (("-A", "-l", "app=web"), {"selector": ["app=web"]}),
        (("default/models",), {"spaceGroup": ["default/models"]}),
        (("*/models", "-n", "team"), {"namespace": ["team"], "spaceGroup": ["*/models"]}),
        (("group/default",), {"spaceGroup": ["group/default", "default"]}),
    ],
)
def test_the_query_of_a_list_of_groups(arguments: tuple[str, ...], query: dict[str, list[str]], server: Server) -> None:
    run("get", "groups", *arguments, "--server", server.url)
    ((_, path, asked, *_),) = server.requests
    asked.pop("limit")
    assert (path, asked) == (f"{canned.V1}/groups", query)


@pytest.mark.parametrize("command", [("get", "groups"), ("describe", "group")])
def test_a_group_that_is_not_there_is_named(command: tuple[str, ...], server: Server) -> None:
    server.answers[GROUPS] = canned.page()
    code, output = run(*command, "team/models", "--server", server.url)
    assert code == 3
    assert "team/models: not found" in output


def test_a_group_with_several_namespaces_says_so_in_words(server: Server) -> None:
    row = {**canned.PLACED_GROUP, "pods": [], "faults": []}
    server.answers[GROUPS] = canned.page(row)
    _, output = run("describe", "group", "default/models", "--server", server.url)
    assert "and 2 of namespaces that you may not see" in output
    assert "Reported" not in output


def test_no_group_is_a_sentence_and_no_error(server: Server) -> None:
    server.answers[GROUPS] = canned.page()
    code, output = run("get", "groups", "-A", "--server", server.url)
    assert (code, output) == (0, "no group in space\n")
