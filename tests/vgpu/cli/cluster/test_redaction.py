"""Planted secrets are removed; what a support case needs stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpu.cli.cluster.bundle import redaction

KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIplanted\n-----END EC PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJwbGFudGVk.c2lnbmF0dXJlcGxhbnRlZA"
LINES = {
    "url": ("connected to postgresql://vgpu:planted@db:5432/history", "postgresql://REMOVED@db:5432/history"),
    "url with at": ("https://me:plan@ted@host/x", "host/x"),
    "option": ("--token=planted --listen=[::]:9871", "--listen=[::]:9871"),
    "dsn": ("host=db password=planted dbname=history", "dbname=history"),
    "json in a log": (r'{"a": "{\"password\": \"planted\", \"user\": \"me\"}"}', r"\"user\": \"me\""),
    "yaml": ("apiKey: planted\nreplicas: 2", "replicas: 2"),
    "header": ("Authorization: Bearer planted.planted", "Authorization"),
    "environment": ("HF_TOKEN=planted", "HF_TOKEN"),
    "word in a name": ("started with PGPASSWORD=planted PGHOST=db", "PGHOST=db"),
    "query of a URL": ("GET https://host:443/x?page=2&apiKey=planted&sort=node", "page=2&apiKey=REMOVED&sort=node"),
    "first of a query": ("GET https://host/?token=planted", "https://host/?token=REMOVED"),
    "words": ("api key: planted, model: H200", "model: H200"),
    "value with a name in it": ("note: --password=planted", "note: --password="),
    "key": (f"before\n{KEY.replace('MHcCAQEEI', 'planted')}\nafter", "after"),
    "cut key": ("before\n-----BEGIN PRIVATE KEY-----\nplanted", "before"),
    "token": (f"minted {TOKEN} for planted".replace(" for planted", ""), "minted"),
    "aws": ("using AKIAPLANTED123456789", "using"),
    "github": ("ghp_planted0123456789abcdefghij", ""),
}
HARMLESS = (
    "secretName: vgpu-webhook-certificate",
    "the token of the account vgpu-admin is valid for 600 s",
    "Secret vgpu-system/vgpu-webhook-certificate is missing",
    "GPU-3f8a6c2e-1111-2222-3333-444455556666 has 81008 MiB",
    "https://vgpu-webhook.vgpu-system.svc:443/mutate?timeout=10s",
    "pods is forbidden: User system:serviceaccount:vgpu-system:vgpu-extender cannot list",
    "image registry.example/vgpushare@sha256:0123456789abcdef",
)


@pytest.mark.parametrize("name", LINES)
def test_a_secret_in_a_text_is_removed(name: str) -> None:
    given, stays = LINES[name]
    cleaned, removed = redaction.text(given)
    assert removed >= 1
    assert "planted" not in cleaned.lower()
    assert "eyJpc3Mi" not in cleaned
    assert stays in cleaned


@pytest.mark.parametrize("line", HARMLESS)
def test_names_and_numbers_stay(line: str) -> None:
    assert redaction.text(line) == (line, 0)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("password", True), ("DB_PASSWORD", True), ("apiKey", True), ("client-key-data", True), ("accessToken", True),
        ("HISTORY_DATABASE_DSN", True), ("secretName", False), ("tokenFile", False), ("automountToken", True),
        ("expirationSeconds", False), ("compass", False), ("secretKeyRef", False), ("node", False), ("monkeys", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, *, is_secret: bool) -> None:
    assert redaction.is_secret_name(name) is is_secret


def test_secrets_in_objects_are_removed() -> None:
    container = {
        "name": "extender",
        "args": ["--history-url=postgresql://u:planted@db/h", "--nodes=3"],
        "env": [{"name": "PGPASSWORD", "value": "planted"}, {"name": "DB_PASSWORD", "value": "planted"},
                {"name": "NODE_NAME", "value": "node-1"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a-secret", "key": "token"}}}],
    }  # fmt: skip
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": "planted",
        "example.io/api-key": "planted",
        "vgpu.io/assignment": "kept",
    }
    pod = {
        "metadata": {"annotations": annotations, "managedFields": [{"manager": "planted"}]},
        "spec": {"containers": [container], "automountServiceAccountToken": True},
        "config": {"kind": "Secret", "metadata": {"name": "kept"}, "data": {"harmless": "planted"}},
    }
    cleaned, removed = redaction.document(pod)
    text = json.dumps(cleaned)
    assert "planted" not in text
    assert removed == 5
    assert cleaned["metadata"]["annotations"]["vgpu.io/assignment"] == "kept"
    assert cleaned["spec"]["containers"][0]["args"][1] == "--nodes=3"
    assert cleaned["spec"]["containers"][0]["env"][2:] == container["env"][2:]
    assert cleaned["spec"]["automountServiceAccountToken"] is True


def test_a_document_that_is_too_deep_is_removed() -> None:
    deep: object = "planted"
    for _ in range(5000):
        deep = [deep]
    assert "planted" not in json.dumps(redaction.document(deep)[0])


@pytest.mark.parametrize("part", ["a", "token", "a=b", "\n"])
def test_a_long_text_without_secrets_is_read_once(part: str) -> None:
    """Otherwise it would take hours, and the test's time would end."""
    long = part * (2_000_000 // len(part))
    assert redaction.text(long) == (long, 0)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read(content: str) -> None:
    cleaned, removed = redaction.text(content)
    assert removed or cleaned == content
