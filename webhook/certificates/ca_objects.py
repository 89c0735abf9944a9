"""The cluster's objects about the CAs: the Secret that contains them, and the caBundles of the configurations.

Several replicas write both. The Secret is installed empty, because the webhook may not create Secrets. Changes are
written with its resourceVersion, and a replica that gets a conflict reads again. The caBundles are patched with the
configuration's resourceVersion, so that no other client's change is undone.
"""

import base64
from datetime import datetime
from http import HTTPStatus
from typing import Final

import msgspec

from vgpu.adapters.kubernetes.client import KubernetesClient, PatchKind
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from webhook.certificates import ca_rotation
from webhook.certificates.signing import Authority

ATTEMPTS: Final = 5
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


async def shared_authorities(
    client: KubernetesClient, namespace: str, name: str, now: datetime
) -> tuple[Authority, ...]:
    """Return the CAs that all replicas share, after rotating them in the Secret where that is due.

    Raises:
        MalformedAuthorities: the Secret contains something else.
        KubernetesError: the API server failed.
    """
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    for _ in range(ATTEMPTS):
        secret = await _read(client, path)
        known = ca_rotation.decode(_data(secret))
        wanted = ca_rotation.rotate(known, now)
        if wanted == known or await _store(client, path, secret, wanted):
            return wanted
    raise KubernetesError(
        HTTPStatus.CONFLICT, "Conflict", f"Secret {namespace}/{name} changes faster than it can be read"
    )


async def publish_bundle(client: KubernetesClient, kind: str, name: str, bundle: bytes) -> bool:
    """Put the bundle into every webhook of a configuration; return whether anything was changed.

    Raises:
        KubernetesError: the API server failed, or there is no such configuration.
    """
    path = f"{_CONFIGURATIONS}/{kind}/{name}"
    for _ in range(ATTEMPTS):
        patch = bundle_patch(msgspec.json.decode(await client.get(path)), bundle)
        if not patch:
            return False
        try:
            await client.patch(path, patch, kind=PatchKind.JSON)
        except KubernetesError as error:
            if error.status not in (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
        else:
            return True
    raise KubernetesError(HTTPStatus.CONFLICT, "Conflict", f"{kind} {name} changes faster than it can be read")


def bundle_patch(configuration: JsonObject, bundle: bytes) -> list[JsonObject]:
    """Return the JSON patch that puts the bundle into every webhook; empty where nothing changes."""
    text = base64.b64encode(bundle).decode()
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": text}
        for index, webhook in enumerate(configuration.get("webhooks") or [])
        if webhook["clientConfig"].get("caBundle") != text
    ]
    version = configuration["metadata"]["resourceVersion"]
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": version}, *changes] if changes else []


async def _read(client: KubernetesClient, path: str) -> JsonObject:
    try:
        found: JsonObject = msgspec.json.decode(await client.get(path))
    except KubernetesError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            why = f"{path} does not exist; create it empty, as in manifests/base/rbac-webhook.yaml"
            raise KubernetesError(error.status, error.reason, why) from None
        raise
    return found


def _data(secret: JsonObject) -> dict[str, bytes]:
    found = secret.get("data") or {}
    return {key: base64.b64decode(value) for key, value in found.items()}


async def _store(client: KubernetesClient, path: str, secret: JsonObject, wanted: tuple[Authority, ...]) -> bool:
    """Replace the Secret's data; return False where another replica was faster."""
    data = {key: base64.b64encode(value).decode() for key, value in ca_rotation.encode(wanted).items()}
    try:
        await client.put(path, {**secret, "data": data})
    except KubernetesError as error:
        if error.status == HTTPStatus.CONFLICT:
            return False
        raise
    return True
