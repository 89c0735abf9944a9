"""Renews the serving certificate while the server runs: new TLS handshakes use the new one, nothing is restarted.

The `step` of a certificate source is repeated, and each step does what is due. A valid certificate is replaced only
after the caBundles contain the CA of the new one; a server without a valid certificate replaces it at once.
"""

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509

from vgpu.adapters.kubernetes.client import KubernetesClient
from vgpu.domain.errors import VgpuError
from webhook.certificates import ca_objects, ca_rotation, signing
from webhook.certificates.signing import ServingCertificate

PAUSE_S: Final = 15.0
FIRST_PAUSE_S: Final = 1.0

log = logging.getLogger(__name__)


class CertificateSource(Protocol):
    """Keeps a certificate and its key in two files."""

    async def step(self) -> bool:
        """Do what is due; return whether the files have changed. Raises VgpuError and OSError."""


class OwnCa:
    """Signs certificates by a CA of its own, and makes the API server trust the CA."""

    def __init__(
        self,
        client: KubernetesClient,
        *,
        namespace: str,
        secret: str,
        configuration: str,
        names: tuple[str, ...],
        key_pair: "KeyPairFiles",
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._secret = secret
        self._configuration = configuration
        self._names = names
        self._key_pair = key_pair
        self._now = now
        self._serving: ServingCertificate | None = None

    async def step(self) -> bool:
        """Renew the CAs, the caBundles and the serving certificate where that is due."""
        now = self._now()
        shared = await ca_objects.shared_authorities(self._client, self._namespace, self._secret, now)
        is_trusted = await self._publish(ca_rotation.bundle(shared))
        signer = ca_rotation.signer(shared, now)
        is_valid = self._serving is not None and self._serving.begins <= now < self._serving.ends
        if not ca_rotation.is_due(self._serving, signer, now) or (is_valid and not is_trusted):
            return False
        serving = signing.issue(signer, self._names, now)
        self._key_pair.write(serving)
        self._serving = serving
        log.info("serving a certificate that expires at %s", serving.ends.isoformat())
        return True

    async def _publish(self, bundle: bytes) -> bool:
        """Make the API server trust the bundle; return whether it certainly does."""
        is_trusted = True
        for kind in ca_objects.KINDS:
            try:
                if await ca_objects.publish_bundle(self._client, kind, self._configuration, bundle):
                    log.info("%s %s has the new CAs", kind, self._configuration)
            except VgpuError as error:
                log.warning("%s %s: %s", kind, self._configuration, error)
                is_trusted = False
        return is_trusted


class MountedFiles:
    """Watches files that another program writes, by content: a mounted Secret changes behind a symbolic link."""

    def __init__(self, key_pair: "KeyPairFiles") -> None:
        self._key_pair = key_pair
        self._seen = b""

    async def step(self) -> bool:
        """Return whether the files have changed."""
        found = self._key_pair.digest()
        changed, self._seen = found != self._seen, found
        return changed


class KeyPairFiles:
    """The files of a certificate and its key, which OpenSSL reads."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self.key = key

    def write(self, serving: ServingCertificate) -> None:
        """Replace both files; their folder is private to this process."""
        self.key.write_bytes(serving.key)
        self.certificate.write_bytes(serving.certificate)

    def digest(self) -> bytes:
        """Return a hash of both files' content."""
        return hashlib.sha256(self.certificate.read_bytes() + self.key.read_bytes()).digest()

    def load(self, context: ssl.SSLContext) -> None:
        """Load both files into a TLS context, which may be in use."""
        context.load_cert_chain(self.certificate, self.key)

    def ends(self) -> datetime | None:
        """Return when the first certificate of the file expires; None where there is none that can be read."""
        try:
            return x509.load_pem_x509_certificate(self.certificate.read_bytes()).not_valid_after_utc
        except (OSError, ValueError):
            return None


async def wait_for_certificate(
    source: CertificateSource, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Step until there is a certificate to serve."""
    while True:
        try:
            await source.step()
        except (VgpuError, OSError) as error:
            log.warning("no certificate yet: %s; again in %.0f s", error, FIRST_PAUSE_S)
            await sleep(FIRST_PAUSE_S)
        else:
            return


async def renew_forever(
    source: CertificateSource,
    key_pair: KeyPairFiles,
    context: ssl.SSLContext,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Repeat the source's step until cancelled, and serve each new certificate."""
    is_stale = False
    while True:
        await sleep(PAUSE_S)
        try:
            is_stale = await source.step() or is_stale
            if is_stale:
                key_pair.load(context)
                is_stale = False
        except (VgpuError, OSError, ssl.SSLError) as error:
            log.warning("certificates: %s; again in %.0f s", error, PAUSE_S)
