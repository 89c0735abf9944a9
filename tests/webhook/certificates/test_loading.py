"""The server loads a renewed key pair, also when a load fails or the two files do not match yet."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from webhook.certificates import renewal, signing
from webhook.certificates.renewal import KeyPairFiles, MountedFiles

START = datetime(2026, 1, 1, tzinfo=UTC)


async def test_new_connections_get_the_renewed_certificate(tmp_path: Path) -> None:
    key_pair = KeyPairFiles(tmp_path / "crt", tmp_path / "key")
    authority = signing.new_authority(datetime.now(UTC))
    key_pair.write(signing.issue(authority, ("localhost",), datetime.now(UTC)))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    key_pair.load(context)
    files = MountedFiles(key_pair)
    await files.step()

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=context) as server:
        before = await _served_certificate(server.sockets[0].getsockname()[1])
        key_pair.write(signing.issue(authority, ("localhost",), datetime.now(UTC)))
        await _renew_once(files, key_pair, context)
        after = await _served_certificate(server.sockets[0].getsockname()[1])
    assert before != after
    assert after == ssl.PEM_cert_to_DER_cert(key_pair.certificate.read_text())


class FailsOnce(KeyPairFiles):
    """Key pair files whose first load fails, although the files are right."""

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(certificate, key)
        self.attempts = 0

    def load(self, context: ssl.SSLContext) -> None:
        self.attempts += 1
        if self.attempts == 1:
            raise OSError("out of file descriptors")
        super().load(context)


async def test_a_failed_load_is_retried(tmp_path: Path) -> None:
    key_pair = FailsOnce(tmp_path / "crt", tmp_path / "key")
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


async def test_a_key_that_does_not_match_the_certificate_yet_is_retried(tmp_path: Path) -> None:
    """The load may happen between the writes of the two files."""
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
        assert await _served_certificate(server.sockets[0].getsockname()[1]) == ssl.PEM_cert_to_DER_cert(
            new.certificate.decode()
        )


async def _renew_once(files: MountedFiles, key_pair: KeyPairFiles, context: ssl.SSLContext) -> None:
    turns = iter([None])

    async def sleep(_: float) -> None:
        if next(turns, "over") == "over":
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await renewal.renew_forever(files, key_pair, context, sleep)


async def _served_certificate(port: int) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found
