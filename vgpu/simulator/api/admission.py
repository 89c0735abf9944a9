"""Calls admission webhooks over HTTPS, as their configuration objects say.

Mutating webhooks are called one after the other, in the order of their configurations' names, then validating ones.
Simplified: `url` only (there is no service network), `matchConditions` are not evaluated (every write that matches the
rules is reviewed), no reinvocation.
"""

import asyncio
import base64
import ssl
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import aiohttp
import msgspec

from vgpu.domain import names
from vgpu.domain.errors import KubernetesError
from vgpu.domain.json_types import JsonObject
from vgpu.simulator.api import patch, policies, selectors
from vgpu.simulator.api.cluster import Warn, unread
from vgpu.simulator.api.resources import MUTATING, NAMESPACES, VALIDATING, Resource, Target
from vgpu.simulator.api.store import Store

USER: Final = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
_DEFAULT_TIMEOUT_S: Final = 10


class Webhooks:
    """Calls the webhooks of the store's configuration objects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(
        self, operation: str, target: Target, new: JsonObject | None, old: JsonObject | None, warn: Warn = unread
    ) -> JsonObject | None:
        """Return the object as the mutating webhooks leave it; `warn` is told the warnings of those that allow.

        Raises:
            KubernetesError: a webhook denied the request, or could not be called and its failurePolicy is Fail.
        """
        for hook in self._matching(MUTATING, operation, target, new or old or {}):
            response = await _ask(hook, _review(operation, target, new, old), warn)
            if new is not None and response.get("patch"):
                new = patch.json_patch(new, msgspec.json.decode(base64.b64decode(response["patch"])))
        for hook in self._matching(VALIDATING, operation, target, new or old or {}):
            await _ask(hook, _review(operation, target, new, old), warn)
            if new is not None and hook["name"].endswith(f".{names.DOMAIN}"):
                policies.check_scheduler(new)
                policies.check_priority(new, old, self._labels(target))
                policies.check_space_group(new, old, self._labels(target))
                for warning in policies.warnings(new, old):
                    warn(warning)
        return new

    def _matching(
        self, configurations: Resource, operation: str, target: Target, obj: JsonObject
    ) -> Iterator[JsonObject]:
        for configuration in self._store.objects(configurations.name):
            for hook in configuration.get("webhooks") or ():
                if any(rule_matches(rule, operation, target) for rule in hook.get("rules") or ()) and self._selected(
                    hook, target, obj
                ):
                    yield hook

    def _selected(self, hook: JsonObject, target: Target, obj: JsonObject) -> bool:
        if target.namespace and not selectors.labels_match(hook.get("namespaceSelector"), self._labels(target)):
            return False
        return selectors.labels_match(hook.get("objectSelector"), obj.get("metadata", {}).get("labels") or {})

    def _labels(self, target: Target) -> JsonObject:
        """Return the labels of an object's namespace."""
        namespace = self._store.get(NAMESPACES.name, ("", target.namespace)) or {"metadata": {}}
        return {"kubernetes.io/metadata.name": target.namespace, **(namespace["metadata"].get("labels") or {})}


def rule_matches(rule: JsonObject, operation: str, target: Target) -> bool:
    """Whether a rule of a webhook matches an operation; `pods` does not match subresources."""
    resource = target.resource
    full = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
    wildcards = {f"{resource.plural}/*", f"*/{target.subresource}"} if target.subresource else {"*"}
    return (
        bool({operation, "*"} & set(rule["operations"]))
        and bool({resource.group, "*"} & set(rule["apiGroups"]))
        and bool({resource.version, "*"} & set(rule["apiVersions"]))
        and bool(({full, "*/*"} | wildcards) & set(rule["resources"]))
    )


def _review(operation: str, target: Target, new: JsonObject | None, old: JsonObject | None) -> JsonObject:
    resource, about = target.resource, new or old or {}
    request = {
        "uid": about.get("metadata", {}).get("uid", "") or target.name,
        "kind": {"group": resource.group, "version": resource.version, "kind": about.get("kind", resource.kind)},
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": target.subresource,
        "name": target.name,
        "namespace": target.namespace,
        "operation": operation,
        "userInfo": USER,
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": None,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def _ask(hook: JsonObject, review: JsonObject, warn: Warn) -> JsonObject:
    """Return the response of a webhook that allows; empty where it cannot be called and failures are ignored."""
    try:
        response = await _call(hook, review)
    except (aiohttp.ClientError, TimeoutError, ssl.SSLError, msgspec.DecodeError, LookupError, ValueError) as error:
        if hook.get("failurePolicy") == "Ignore":
            return {}
        message = f'failed calling webhook "{hook["name"]}": {error or type(error).__name__}'
        raise KubernetesError(500, "InternalError", f"Internal error occurred: {message}") from error
    if not response.get("allowed"):
        status = response.get("status") or {}
        message = (
            f'admission webhook "{hook["name"]}" denied the request: {status.get("message", "without explanation")}'
        )
        raise KubernetesError(int(status.get("code") or 403), status.get("reason") or "Forbidden", message)
    for warning in response.get("warnings") or ():
        warn(warning)
    return response


async def _call(hook: JsonObject, review: JsonObject) -> JsonObject:
    client = hook["clientConfig"]
    timeout = hook.get("timeoutSeconds", _DEFAULT_TIMEOUT_S)
    context = trust(client.get("caBundle", ""))
    limits = aiohttp.ClientTimeout(total=timeout)
    headers = {"Content-Type": "application/json"}
    async with (
        asyncio.timeout(timeout),
        aiohttp.ClientSession(timeout=limits) as session,
        session.post(
            client["url"],
            params={"timeout": f"{timeout}s"},
            data=msgspec.json.encode(review),
            headers=headers,
            ssl=context,
        ) as answer,
    ):
        answer.raise_for_status()
        body: dict[str, Any] = msgspec.json.decode(await answer.read())
    response: JsonObject = body["response"]
    if response["uid"] != review["request"]["uid"]:
        raise ValueError("the response has the UID of another request")
    return response


@lru_cache(maxsize=8)
def trust(bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts only the CAs of a base64 bundle of PEM certificates."""
    return ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
