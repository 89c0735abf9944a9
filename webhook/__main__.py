"""`python -m webhook`: read the settings, build the objects, serve until SIGTERM."""

import asyncio
import logging
import os
import random
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from vgpu.adapters import extras

with extras.needed("cluster", by="webhook"):
    import uvicorn
    from fastapi import FastAPI

    import vgpu
    from vgpu.adapters import listening, metrics_server, process
    from vgpu.adapters import settings as settings_reader
    from vgpu.adapters.kubernetes.client import KubernetesClient
    from vgpu.adapters.kubernetes.reflector import Reflector
    from vgpu.adapters.metrics import Registry
    from vgpu.domain import names
    from vgpu.domain.errors import VgpuError
    from webhook import app, cluster_cards
    from webhook import metrics as webhook_metrics
    from webhook.certificates import renewal
    from webhook.certificates.renewal import CertificateSource, KeyPairFiles, MountedFiles, OwnCa
    from webhook.cluster_cards import ClusterCards
    from webhook.metrics import ReviewMetrics
    from webhook.rules import AdmissionSettings
    from webhook.settings import WebhookSettings

GRACE_S: Final = 5  # for reviews in flight at the end
KEEP_ALIVE_S: Final = 300  # longer than the API server's 90 s: a connection that closes during a POST fails the call

log = logging.getLogger("webhook")


def main() -> None:
    """Run the webhook; exit with status 2 on wrong settings, 1 on an error."""
    settings = settings_reader.read(WebhookSettings, os.environ)
    process.run("webhook", settings.log_level, lambda: serve(settings))


async def serve(settings: WebhookSettings) -> None:
    """Serve until cancelled; then answer the reviews in flight."""
    kubeconfig = str(settings.kubeconfig) if settings.kubeconfig else None
    async with await KubernetesClient.connect(kubeconfig, user_agent=f"vgpu-webhook/{vgpu.__version__}") as client:
        with tempfile.TemporaryDirectory(prefix="vgpu-webhook-") as folder:
            await _serve(settings, client, Path(folder))


async def _serve(settings: WebhookSettings, client: KubernetesClient, folder: Path) -> None:
    cards = ClusterCards()
    watch = Reflector(client, names.GPUNODES_PATH, cards, jitter=random.random, decode=cluster_cards.decode)
    key_pair, certificates = _certificates(settings, client, folder)
    registry = Registry()
    metrics = ReviewMetrics(registry, time.monotonic)
    registry.add(lambda: webhook_metrics.certificate(key_pair.ends))
    application = app.create(_rules(settings, cards), watch.synced.is_set, metrics)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch.run())
        measuring = group.create_task(_serve_metrics(settings, registry))
        await renewal.wait_for_certificate(certificates)
        config = _config(application, key_pair)
        keeping = group.create_task(renewal.renew_forever(certificates, key_pair, _context(config)))
        log.info("listening on https://%s", settings.listen)
        with listening.listen(settings.host, settings.port) as listener:
            await process.HttpServer(config).serve_until_cancelled([listener])
        watching.cancel()
        keeping.cancel()
        measuring.cancel()


async def _serve_metrics(settings: WebhookSettings, registry: Registry) -> None:
    if settings.metrics_listen:
        await metrics_server.serve(registry, settings.metrics_listen, time.monotonic)


def _certificates(
    settings: WebhookSettings, client: KubernetesClient, folder: Path
) -> tuple[KeyPairFiles, CertificateSource]:
    if settings.certificates == "files":
        key_pair = KeyPairFiles(settings.tls_cert, settings.tls_key)
        return key_pair, MountedFiles(key_pair)
    key_pair = KeyPairFiles(folder / "tls.crt", folder / "tls.key")
    own = OwnCa(
        client,
        namespace=settings.namespace,
        secret=settings.secret,
        configuration=settings.configuration,
        names=settings.serving_names,
        key_pair=key_pair,
        now=_now,
    )
    return key_pair, own


def _rules(settings: WebhookSettings, cards: ClusterCards) -> AdmissionSettings:
    return AdmissionSettings(
        cards=cards.cards,
        slice_mib=settings.slice_mib,
        scheduler=settings.scheduler_name,
        gpushare_unit_mib=settings.gpushare_unit_mib,
    )


def _config(application: FastAPI, key_pair: KeyPairFiles) -> uvicorn.Config:
    config = uvicorn.Config(
        application,
        access_log=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=key_pair.certificate,
        ssl_keyfile=key_pair.key,
    )
    config.load()
    return config


def _context(config: uvicorn.Config) -> ssl.SSLContext:
    if config.ssl is None:
        raise VgpuError("the server's configuration has no TLS")
    return config.ssl


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
