import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import test_utils
from cryptography import x509

from tests.webhook import builders
from tests.webhook.fake_api import FakeApi
from vgpu.adapters.kubernetes.client import Client
from vgpu.errors import KubernetesError
from webhook.certificates import ca_objects, ca_rotation, renewal, signing
from webhook.certificates.renewal import KeyPairFiles, MountedFiles, OwnCa

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
    for path in CONFIGURATIONS:
        fake.put(path, {"webhooks": [{"name": "a", "clientConfig": {}}, {"name": "b", "clientConfig": {"url": "u"}}]})
    return fake


@pytest.fixture
async def client(api: FakeApi, tmp_path: Path) -> AsyncIterator[Client]:
    async with test_utils.TestServer(api.application()) as server:
        kubeconfig = builders.kubeconfig(tmp_path / "kubeconfig", f"http://{server.host}:{server.port}")
        async with await Client.connect(str(kubeconfig), user_agent="test") as found:
            yield found


def replica(client: Client, folder: Path, clock: Clock) -> OwnCa:
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


async def test_replicas_share_one_authority_and_each_serves_its_own_certificate(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    clock = Clock()
    one, two = (replica(client, tmp_path / name, clock) for name in ("one", "two"))
    await asyncio.gather(one.step(), two.step())
    assert issuer(tmp_path / "one") == issuer(tmp_path / "two")
    assert (tmp_path / "one/key").read_bytes() != (tmp_path / "two/key").read_bytes()
    assert {bundle[0].subject for bundle in bundles(api)} == {issuer(tmp_path / "one")}


async def test_nothing_is_written_while_nothing_is_due(api: FakeApi, client: Client, tmp_path: Path) -> None:
    clock = Clock()
    kept = replica(client, tmp_path / "one", clock)
    assert await kept.step()
    api.writes.clear()
    clock.now += timedelta(days=1)
    assert not await kept.step()
    assert api.writes == []


async def test_a_rotation_trusts_first_and_signs_later(api: FakeApi, client: Client, tmp_path: Path) -> None:
    clock = Clock()
    kept = replica(client, tmp_path / "one", clock)
    await kept.step()
    first = issuer(tmp_path / "one")
    clock.now = START + signing.AUTHORITY_LIFE - ca_rotation.AUTHORITY_RENEWAL + timedelta(hours=1)
    await kept.step()
    assert issuer(tmp_path / "one") == first
    assert [len(bundle) for bundle in bundles(api)] == [2, 2, 2, 2]
    clock.now += ca_rotation.OVERLAP
    assert await kept.step()
    assert issuer(tmp_path / "one") == bundles(api)[0][1].subject != first


async def test_a_secret_that_was_deleted_is_a_new_beginning(api: FakeApi, client: Client, tmp_path: Path) -> None:
    """That is how an admin withdraws a key that leaked: nothing of the old authority stays trusted."""
    kept = replica(client, tmp_path / "one", Clock())
    await kept.step()
    old = issuer(tmp_path / "one")
    del api.objects[SECRET]
    assert await kept.step()
    assert issuer(tmp_path / "one") != old
    assert all([c.subject for c in bundle] == [issuer(tmp_path / "one")] for bundle in bundles(api))


async def test_another_change_of_the_configuration_is_never_undone(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    def change_once() -> None:
        """Somebody reorders the webhooks between our read and our patch."""
        api.before = lambda: None
        for path in CONFIGURATIONS:
            found = api.objects[path]
            api.put(path, {**found, "webhooks": list(reversed(found["webhooks"])), "changed": True})

    kept = replica(client, tmp_path / "one", Clock())
    await kept.step()
    for path in CONFIGURATIONS:
        for webhook in api.objects[path]["webhooks"]:
            del webhook["clientConfig"]["caBundle"]
    api.before = change_once
    await kept.step()
    assert [w["name"] for w in api.objects[CONFIGURATIONS[0]]["webhooks"]] == ["b", "a"]
    assert len(bundles(api)) == 4


async def test_a_good_certificate_is_kept_while_its_successor_would_not_be_trusted(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    clock = Clock()
    kept = replica(client, tmp_path / "one", clock)
    await kept.step()
    removed = api.objects.pop(CONFIGURATIONS[1])
    clock.now += timedelta(days=25)
    assert not await kept.step()
    api.objects[CONFIGURATIONS[1]] = removed
    assert await kept.step()


async def test_without_configurations_there_is_still_a_certificate(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    for path in CONFIGURATIONS:
        del api.objects[path]
    assert await replica(client, tmp_path / "one", Clock()).step()


async def test_a_secret_with_something_else_in_it_is_left_as_it_is(
    api: FakeApi, client: Client, tmp_path: Path
) -> None:
    content = {"data": {ca_rotation.CERTIFICATES_KEY: base64.b64encode(b"mine").decode()}}
    api.put(SECRET, content)
    with pytest.raises(ca_rotation.MalformedAuthorities):
        await replica(client, tmp_path / "one", Clock()).step()
    assert api.objects[SECRET]["data"] == content["data"]


async def test_an_empty_secret_made_beforehand_is_filled(api: FakeApi, client: Client, tmp_path: Path) -> None:
    api.put(SECRET, {"metadata": {"name": "vgpu-webhook-ca", "labels": {"a": "b"}}})
    assert await replica(client, tmp_path / "one", Clock()).step()
    assert api.objects[SECRET]["metadata"]["labels"] == {"a": "b"}
    assert len(ca_rotation.decode({k: base64.b64decode(v) for k, v in api.objects[SECRET]["data"].items()})) == 1


async def test_the_first_certificate_is_waited_for() -> None:
    pauses: list[float] = []

    class Late:
        async def step(self) -> bool:
            if len(pauses) < 3:
                raise KubernetesError(0, "Refused", "no answer")
            return True

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    await renewal.wait_for_certificate(Late(), sleep)
    assert len(pauses) == 3


async def test_a_live_server_shows_the_new_certificate_to_new_connections(tmp_path: Path) -> None:
    key_pair = KeyPairFiles(tmp_path / "crt", tmp_path / "key")
    authority = signing.new_authority(datetime.now(UTC))
    key_pair.write(signing.issue(authority, ("localhost",), datetime.now(UTC)))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    key_pair.load(context)
    files = MountedFiles(key_pair)
    await files.step()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        before = await _shown(server.sockets[0].getsockname()[1])
        key_pair.write(signing.issue(authority, ("localhost",), datetime.now(UTC)))
        await _keep_until_loaded(files, key_pair, context)
        after = await _shown(server.sockets[0].getsockname()[1])
    assert before != after
    assert after == ssl.PEM_cert_to_DER_cert(key_pair.certificate.read_text())


class Flaky(KeyPairFiles):
    """Fails to load once, though nothing is wrong with the files."""

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(certificate, key)
        self.attempts = 0

    def load(self, context: ssl.SSLContext) -> None:
        self.attempts += 1
        if self.attempts == 1:
            raise OSError("out of file descriptors")
        super().load(context)


async def test_what_could_not_be_loaded_is_tried_again_until_it_is(tmp_path: Path) -> None:
    key_pair = Flaky(tmp_path / "crt", tmp_path / "key")
    key_pair.write(signing.issue(signing.new_authority(START), ("localhost",), START))
    turns = iter(range(3))

    async def sleep(_: float) -> None:
        if next(turns, None) is None:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await renewal.renew_forever(
            MountedFiles(key_pair), key_pair, ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), sleep
        )
    assert key_pair.attempts == 2


async def test_files_that_do_not_fit_yet_are_tried_again(tmp_path: Path) -> None:
    """Who writes two files is caught between them."""
    key_pair = KeyPairFiles(tmp_path / "crt", tmp_path / "key")
    authority = signing.new_authority(START)
    old, new = (signing.issue(authority, ("localhost",), START) for _ in range(2))
    key_pair.write(old)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    files = MountedFiles(key_pair)
    await files.step()
    steps: list[Any] = [
        lambda: key_pair.key.write_bytes(new.key),
        lambda: key_pair.certificate.write_bytes(new.certificate),
    ]

    async def sleep(_: float) -> None:
        if not steps:
            raise asyncio.CancelledError
        steps.pop(0)()

    with pytest.raises(asyncio.CancelledError):
        await renewal.renew_forever(files, key_pair, context, sleep)
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context) as server:
        assert await _shown(server.sockets[0].getsockname()[1]) == ssl.PEM_cert_to_DER_cert(new.certificate.decode())


async def _keep_until_loaded(files: MountedFiles, key_pair: KeyPairFiles, context: ssl.SSLContext) -> None:
    turns = iter([None])

    async def sleep(_: float) -> None:
        if next(turns, "over") == "over":
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await renewal.renew_forever(files, key_pair, context, sleep)


async def _shown(port: int) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found
