"""Renewal of the webhook's certificate and CA by several replicas, with a fake API server."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import test_utils
from cryptography import x509

from tests.webhook import builders
from tests.webhook.fake_api import FakeApi
from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import KubernetesError
from webhook.certificates import ca_objects, ca_rotation, renewal, signing
from webhook.certificates.renewal import KeyPairFiles, OwnCa

START = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "/api/v1/namespaces/vgpu-system/secrets/vgpu-webhook-ca"
CONFIGURATIONS = [f"/apis/admissionregistration.k8s.io/v1/{kind}/vgpu-webhook" for kind in ca_objects.KINDS]


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def api() -> FakeApi:
    fake = FakeApi()
    fake.put(SECRET, {})  # installed empty
    for path in CONFIGURATIONS:
        fake.put(path, {"webhooks": [{"name": "a", "clientConfig": {}}, {"name": "b", "clientConfig": {"url": "u"}}]})
    return fake


@pytest.fixture
async def client(api: FakeApi, tmp_path: Path) -> AsyncIterator[KubernetesClient]:
    async with test_utils.TestServer(api.application()) as server:
        kubeconfig = builders.kubeconfig(tmp_path / "kubeconfig", f"http://{server.host}:{server.port}")
        async with await KubernetesClient.connect(str(kubeconfig), user_agent="test") as found:
            yield found


def replica(client: KubernetesClient, folder: Path, clock: Clock) -> OwnCa:
    folder.mkdir(exist_ok=True)
    return OwnCa(
        client,
        namespace="vgpu-system",
        secret="vgpu-webhook-ca",
        configuration="vgpu-webhook",
        names=("vgpu-webhook.vgpu-system.svc",),
        key_pair=KeyPairFiles(folder / "crt", folder / "key"),
        now=clock,
    )


def bundles(api: FakeApi) -> list[list[x509.Certificate]]:
    return [
        x509.load_pem_x509_certificates(base64.b64decode(webhook["clientConfig"]["caBundle"]))
        for path in CONFIGURATIONS
        for webhook in api.objects[path]["webhooks"]
    ]


def issuer(folder: Path) -> x509.Name:
    return x509.load_pem_x509_certificate((folder / "crt").read_bytes()).issuer


async def test_replicas_share_one_ca_and_each_has_its_own_certificate(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    clock = Clock()
    one, two = (replica(client, tmp_path / name, clock) for name in ("one", "two"))
    await asyncio.gather(one.step(), two.step())
    assert issuer(tmp_path / "one") == issuer(tmp_path / "two")
    assert (tmp_path / "one/key").read_bytes() != (tmp_path / "two/key").read_bytes()
    assert {bundle[0].subject for bundle in bundles(api)} == {issuer(tmp_path / "one")}


async def test_nothing_is_written_while_nothing_is_due(api: FakeApi, client: KubernetesClient, tmp_path: Path) -> None:
    clock = Clock()
    own_ca = replica(client, tmp_path / "one", clock)
    assert await own_ca.step()
    api.writes.clear()
    clock.now += timedelta(days=1)
    assert not await own_ca.step()
    assert api.writes == []


async def test_a_new_ca_is_trusted_before_it_signs(api: FakeApi, client: KubernetesClient, tmp_path: Path) -> None:
    clock = Clock()
    own_ca = replica(client, tmp_path / "one", clock)
    await own_ca.step()
    first = issuer(tmp_path / "one")
    clock.now = START + signing.AUTHORITY_LIFE - ca_rotation.AUTHORITY_RENEWAL + timedelta(hours=1)
    await own_ca.step()
    assert issuer(tmp_path / "one") == first
    assert [len(bundle) for bundle in bundles(api)] == [2, 2, 2, 2]
    clock.now += ca_rotation.OVERLAP
    assert await own_ca.step()
    assert issuer(tmp_path / "one") == bundles(api)[0][1].subject != first


async def test_after_an_emptied_secret_only_a_new_ca_is_trusted(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    """An admin empties the Secret when a key has leaked: the old CA must not stay trusted."""
    own_ca = replica(client, tmp_path / "one", Clock())
    await own_ca.step()
    old = issuer(tmp_path / "one")
    api.put(SECRET, {})
    assert await own_ca.step()
    assert issuer(tmp_path / "one") != old
    assert all([c.subject for c in bundle] == [issuer(tmp_path / "one")] for bundle in bundles(api))


async def test_a_concurrent_change_of_the_configuration_is_kept(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    def change_once() -> None:
        """Reorder the webhooks between the read and the patch of the renewal."""
        api.before = lambda: None
        for path in CONFIGURATIONS:
            found = api.objects[path]
            api.put(path, {**found, "webhooks": list(reversed(found["webhooks"])), "changed": True})

    own_ca = replica(client, tmp_path / "one", Clock())
    await own_ca.step()
    for path in CONFIGURATIONS:
        for webhook in api.objects[path]["webhooks"]:
            del webhook["clientConfig"]["caBundle"]
    api.before = change_once
    await own_ca.step()
    assert [w["name"] for w in api.objects[CONFIGURATIONS[0]]["webhooks"]] == ["b", "a"]
    assert len(bundles(api)) == 4


async def test_a_valid_certificate_is_kept_while_the_next_would_not_be_trusted(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    clock = Clock()
    own_ca = replica(client, tmp_path / "one", clock)
    await own_ca.step()
    removed = api.objects.pop(CONFIGURATIONS[1])
    clock.now += timedelta(days=25)
    assert not await own_ca.step()
    api.objects[CONFIGURATIONS[1]] = removed
    assert await own_ca.step()


async def test_without_configurations_there_is_still_a_certificate(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    for path in CONFIGURATIONS:
        del api.objects[path]
    assert await replica(client, tmp_path / "one", Clock()).step()


async def test_a_secret_with_other_content_is_not_changed(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    content = {"data": {ca_rotation.CERTIFICATES_KEY: base64.b64encode(b"mine").decode()}}
    api.put(SECRET, content)
    with pytest.raises(ca_rotation.MalformedAuthorities):
        await replica(client, tmp_path / "one", Clock()).step()
    assert api.objects[SECRET]["data"] == content["data"]


async def test_an_empty_secret_is_filled(api: FakeApi, client: KubernetesClient, tmp_path: Path) -> None:
    api.put(SECRET, {"metadata": {"name": "vgpu-webhook-ca", "labels": {"a": "b"}}})
    assert await replica(client, tmp_path / "one", Clock()).step()
    assert api.objects[SECRET]["metadata"]["labels"] == {"a": "b"}
    assert len(ca_rotation.decode({k: base64.b64decode(v) for k, v in api.objects[SECRET]["data"].items()})) == 1


async def test_a_missing_secret_is_named_and_never_created(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    """An account that may create Secrets can get the token of any other account of its namespace."""
    del api.objects[SECRET]
    with pytest.raises(KubernetesError, match=r"vgpu-webhook-ca does not exist; create it empty"):
        await replica(client, tmp_path / "one", Clock()).step()
    assert not any("secrets" in write for write in api.writes)


async def test_waiting_for_the_first_certificate_retries() -> None:
    pauses: list[float] = []

    class FailsThreeTimes:
        async def step(self) -> bool:
            if len(pauses) < 3:
                raise KubernetesError(0, "Refused", "no answer")
            return True

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    await renewal.wait_for_certificate(FailsThreeTimes(), sleep)
    assert len(pauses) == 3


async def test_a_clock_that_was_ahead_leaves_no_certificate_that_is_not_valid_yet(
    api: FakeApi, client: KubernetesClient, tmp_path: Path
) -> None:
    clock = Clock()
    one, folder = replica(client, tmp_path / "one", clock), tmp_path / "one"
    await one.step()
    clock.now = START + signing.AUTHORITY_LIFE + timedelta(days=1)
    await one.step()
    clock.now = START + timedelta(minutes=1)
    assert await one.step()
    served = x509.load_pem_x509_certificate((folder / "crt").read_bytes())
    assert served.not_valid_before_utc <= clock.now
    (signer,) = (ca for ca in bundles(api)[0] if ca.subject == served.issuer)
    assert signer.not_valid_before_utc <= clock.now
    clock.now += timedelta(minutes=1)
    assert not await one.step()
