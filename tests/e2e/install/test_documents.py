"""The API server accepts the manifests of the documents, and kubectl knows the options of their commands.

tests/contract/documents compares all else in the documents with the code; test_tutorial.py runs the tutorial.
"""

import json

import pytest

from cluster.cluster import GpuCluster
from tests.contract.documents import manifests, pages
from tests.e2e.pod_namespace import PodNamespace

pytestmark = pytest.mark.e2e

PLUGINS = {"vgpu", "krew"}  # of kubectl, which is asked without them

PAGES = [page for page in pages.pages() if not page.is_of_its_time]


def complete() -> list[tuple[str, manifests.Json]]:
    """Where a manifest is written that an API server can judge, and the manifest."""
    written = [
        (where, manifest)
        for page in PAGES
        for where, text in pages.manifests(page)
        for manifest in manifests.documents(text)
    ]
    return [(where, document) for where, document in written if manifests.is_complete(document)]


def kubectl_commands() -> list[tuple[str, tuple[str, ...]]]:
    """Where a command of kubectl is written that is not a plugin's, and its words after `kubectl`."""
    written = [(where, command.words) for page in PAGES for where, command in pages.commands(page)]
    return [(where, words[1:]) for where, words in written if words[0] == "kubectl" and words[1] not in PLUGINS]


def test_every_manifest_is_accepted(cluster: GpuCluster, namespace: PodNamespace) -> None:
    (node, *_) = cluster.nodes
    refused = {}
    for where, document in complete():
        document["metadata"] |= {"namespace": namespace.name}
        document.get("spec", {}).pop("priorityClassName", None)  # of a PriorityClass in the same text, not created here
        if document["kind"] == "GPUNode":
            document["metadata"] = {"name": node.name}
        apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-"]
        answer = cluster.kubectl(*apply, stdin=json.dumps(document), check=False)
        if "serverside-applied" not in answer:
            refused[where] = answer
    assert refused == {}
    assert len(complete()) >= 10


def test_kubectl_knows_every_option(cluster: GpuCluster) -> None:
    """With `--help` kubectl reads the options of a command and does not run the command."""
    answers = {where: cluster.kubectl(*with_help(words), check=False) for where, words in kubectl_commands()}
    assert {where: answer for where, answer in answers.items() if "Usage:" not in answer} == {}
    assert len(answers) > 30


def with_help(words: tuple[str, ...]) -> tuple[str, ...]:
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], "--help", *words[end:])
