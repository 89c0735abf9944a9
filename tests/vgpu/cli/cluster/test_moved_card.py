"""A card that two nodes report, at the command line."""

import pytest

from tests.vgpu.cli.cluster import canned
from tests.vgpu.cli.cluster.conftest import Server, run

UUID = canned.UUIDS[0]
HERE = canned.gpu(0, 0, 0, [])
THERE = {**HERE, "node": "node-9", "healthy": False, "reason": "DuplicateUUID", "countsOn": "node-1", "freeMiB": 0}


@pytest.fixture
def moved(server: Server) -> Server:
    server.answers["GET /api/v1/gpus"] = (200, {"items": [HERE, THERE], "nextCursor": ""})
    server.answers[f"POST /api/v1/gpus/{UUID}/cordon"] = (200, {**HERE, "cordoned": True})
    return server


def posts(server: Server) -> list[str]:
    return [path for method, path, *_ in server.requests if method == "POST"]


def test_a_cordon_by_the_name_of_the_other_node_is_refused_and_changes_nothing(moved: Server) -> None:
    code, output = run("cordon", "node-9/0", "--server", moved.url)
    assert code == 2
    assert "node-9/0: DuplicateUUID: the card counts on node node-1" in output
    assert posts(moved) == []


@pytest.mark.parametrize("name", [UUID, "node-1/0"])
def test_a_cordon_by_uuid_is_about_the_card_where_it_counts(moved: Server, name: str) -> None:
    assert run("cordon", name, "--server", moved.url) == (0, f"gpu/{UUID} (node-1/0) cordoned\n")
    assert posts(moved) == [f"/api/v1/gpus/{UUID}/cordon"]


def test_the_word_is_in_lists_and_descriptions_and_the_card_in_one_total(moved: Server) -> None:
    listed = run("get", "gpus", "--server", moved.url)[1]
    assert [line.split()[6] for line in listed.splitlines()[1:]] == ["ok", "DuplicateUUID"]
    described = run("describe", "gpu", "node-9/0", "--server", moved.url)[1]
    assert "DuplicateUUID: the card counts on node node-1" in described
    assert "0/79.6 (0%)" in run("inspect", "--server", moved.url)[1]
