"""AdmissionReview v1: the messages between the API server and the webhook.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from vgpu.errors import MalformedError

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
INVALID: Final = 422

Json = Mapping[str, Any]
Operation = dict[str, Any]  # one step of a JSON patch, RFC 6902


class MalformedReview(MalformedError):
    """A body that is no AdmissionReview of a pod; the message says where."""


class User(msgspec.Struct):
    """The user of the request under review."""

    username: str = ""
    groups: list[str] = []


class Request(msgspec.Struct, rename="camel"):
    """The request under review; `decode` has checked the shape of the pods' JSON."""

    uid: str
    operation: str
    sub_resource: str = ""
    user_info: User = msgspec.field(default_factory=User)
    object: Any = None
    old_object: Any = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: Request


class _Resources(msgspec.Struct):
    limits: dict[str, str | int] | None = None
    requests: dict[str, str | int] | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str
    resources: _Resources | None = None
    env: list[_Variable] | None = None
    restart_policy: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] = []
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct):
    """The part of a pod that the webhook reads, for checking its shape."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Review).decode


def decode(body: bytes) -> Request:
    """Read a review of a pod.

    Raises:
        MalformedReview: the body is no such review.
    """
    try:
        review = _decode(body)
        for pod in (review.request.object, review.request.old_object):
            if pod is not None:
                msgspec.convert(pod, _Pod)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReview(str(error)) from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise MalformedReview(f"{review.api_version} {review.kind} is not {API_VERSION} {KIND}")
    return review.request


def allow(uid: str, patch: Sequence[Operation] = ()) -> bytes:
    """Return the answer that allows the request, changed by the patch."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _encode(response)


def deny(uid: str, message: str) -> bytes:
    """Return the answer that denies the request with a message for the user."""
    status = {"code": INVALID, "reason": "Invalid", "message": message}
    return _encode({"uid": uid, "allowed": False, "status": status})


def _encode(response: Json) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
