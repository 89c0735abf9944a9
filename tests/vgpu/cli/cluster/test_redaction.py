"""Planted secrets are removed; what a support case needs stays."""

import base64
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
    "key in base64": (f"key {base64.b64encode(KEY.encode()).decode()} end", "end"),
    "token": (f"minted {TOKEN} for planted".replace(" for planted", ""), "minted"),
    "aws": ("using AKIAPLANTED123456789", "using"),
    "aws with its key": ("AKIAPLANTED123456789:wPlantedtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKE", "REMOVED"),
    "aws key in the next line": ("AKIAPLANTED123456789\nwPlantedtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKE\nend", "end"),
    "aws key alone": ("with wPlantedtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKE at us-east-1", "at us-east-1"),
    "openai": ("uses sk-proj-Planted_0123456789-abcdef for it", "for it"),
    "older openai": ("uses sk-Planted0123456789abcdefghijklmnop", "uses"),
    "nvidia": ("nvapi-planted-0123456789abcdefghij, model", ", model"),
    "google": ("AIzaPlanted0123456789abcdefghijklmnopqr x", "x"),
    "stripe": ("sk_live_planted0123456789", ""),
    "slack hook": ("POST https://hooks.slack.com/services/T0/B0/planted", "hooks.slack.com"),
    "registry": (r'{"auths": {"r.example": {"auth": "cGxhbnRlZDpwbGFudGVk", "email": "me"}}}', "r.example"),
    "option and value": ("sh -c 'serve --db-password planted --port 80'", "--port 80"),
    "options of JSON": (r'["--db-password", "planted", "--port", "80"]', '"--port", "80"'),
    "options of YAML": ("args:\n- --db-password\n- planted\n- --port", "- --port"),
    "variable of JSON": (r'{"name":"PGPASS","value":"planted"},{"name":"PORT","value":"80"}', '"value":"80"'),
    "variable of YAML": ("- name: OPENAI_KEY\n  value: planted\n- name: PORT", "- name: PORT"),
    "name that ends in pass": ("PGPASS=planted PGHOST=db", "PGHOST=db"),
    "name that ends in key": ("OPENAI_KEY=planted;AccountKey=planted;Endpoint=x", "Endpoint=x"),
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
    "commit 1a2b3c4d5e6f708192a3b4c5d6e7f80910111213",
    "pod sk-learn-trainer-7c9d8b6f5-x2x4z of Deployment sk-learn-trainer",
    "topologyKey: kubernetes.io/hostname, key: node-role.kubernetes.io/control-plane",
    "vllm serve --max-num-batched-tokens 8192 --max-model-len 4096 --token-file /var/run/token",
    "caBundle LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkRENDQVJxZ0F3SUJBZ0lV",
    "--tls-key=/etc/vgpu/tls/tls.key",
    "the options --token, --admin-auth=kubernetes",
    "- name: NODE_NAME\n  value: node-1",
    "/Applications/GPU4/Tools/VeryLongName/bin",
)


@pytest.mark.parametrize("name", LINES)
def test_a_secret_in_a_text_is_removed(name: str) -> None:
    given, stays = LINES[name]
    cleaned, removed = redaction.text(given)
    assert removed >= 1
    assert "planted" not in cleaned.lower()
    assert not [start for start in ("eyJpc3Mi", "cGxhbnRl", "LS0tLS1CRUdJTi") if start in cleaned]
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
        ("PGPASS", True), ("MYSQL_PASS", True), ("SMTP_PASSWD", True), ("OPENAI_KEY", True), ("OPENAIKey", True),
        ("signingKey", True), ("deploy-key", True), ("HFTOKEN", True), ("clientsecret", True), ("openaiapikey", True),
        ("--db-password", True), (".dockerconfigjson", True), ("PGPASSFILE", False), ("KEY", False), ("key", False),
        ("topologyKey", False), ("THEIR_PUBLIC_KEY", False), ("bypass", False), ("--max-tokens", False),
        ("max_new_tokens", False), ("admin-auth", False), ("hotkey", False),
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


def test_an_argument_behind_an_option_with_a_secret_name_is_removed() -> None:
    args = ["--db-password", "S3cretArg2", "-token", "planted", "--port", "80", "--api-key", "--verbose", "serve"]
    cleaned, removed = redaction.document({"args": args, "command": ["--no-secrets-of-ours", "--password"]})
    expected = ["--db-password", "REMOVED", "-token", "REMOVED", "--port", "80", "--api-key", "--verbose", "serve"]
    assert (cleaned["args"], removed) == (expected, 2)
    assert cleaned["command"] == ["--no-secrets-of-ours", "--password"]


def test_a_document_that_is_too_deep_is_removed() -> None:
    deep: object = "planted"
    for _ in range(5000):
        deep = [deep]
    assert "planted" not in json.dumps(redaction.document(deep)[0])


@pytest.mark.heavy
@pytest.mark.parametrize("part", ["a", "token", "a=b", "\n"])
def test_a_long_text_without_secrets_is_read_once(part: str) -> None:
    """Otherwise it would take hours, and the test's time would end."""
    long = part * (2_000_000 // len(part))
    assert redaction.text(long) == (long, 0)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read(content: str) -> None:
    cleaned, removed = redaction.text(content)
    assert removed or cleaned == content
