"""The example manifests are admitted without a warning, and their README lists them; tests/e2e runs them."""

from pathlib import Path

import pytest

from tests.manifests import examples
from tests.manifests.examples import FILES, FOLDER
from tests.webhook.builders import rules
from vgpu.domain import pod_warnings
from vgpu.domain.asks import request
from webhook import mutate, validate


def test_there_are_examples() -> None:
    assert len(FILES) > 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_pod_of_an_example_is_admitted_with_a_share(path: Path) -> None:
    pods = [pod for document in examples.documents(path) for pod in examples.pods(document)]
    assert pods
    for pod in pods:
        admitted = mutate.mutate(pod, rules()).pod
        assert validate.on_create(admitted, rules()) == []
        assert pod_warnings.warnings(admitted) == []
        asked = request.parse(admitted).request
        assert asked is not None
        assert asked.choosers


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_readme_lists_every_example(path: Path) -> None:
    assert f"| [{path.name}]({path.name}) |" in (FOLDER / "README.md").read_text()
