"""AdmissionReview v1: the messages between the API server and the webhook.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response
"""

import base64
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vgpu.adapters.kubernetes.pod_json import PodJson
from vgpu.domain.errors import MalformedError
from vgpu.domain.json_types import Json

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
INVALID: Final = 422

Operation = dict[str, Any]  # one step of a JSON patch, RFC 6902


class UnreadableReview(MalformedError):
    """A body that is no AdmissionReview of a pod; the message says why. `uid` is empty where none was found."""

    def __init__(self, uid: str, why: str) -> None:
        super().__init__(why)
        self.uid = uid


class User(msgspec.Struct):
    """The user of the request under review."""

    username: str = ""
    groups: list[str] = []


class ReviewRequest(msgspec.Struct):
    """The request under review, with the part of the pods that the webhook reads."""

    uid: str
    operation: str
    sub_resource: str
    user: User
    object: Json | None = None
    old_object: Json | None = None


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    sub_resource: str = ""
    user_info: User = msgspec.field(default_factory=User)
    object: PodJson | None = None
    old_object: PodJson | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode
_UID: Final = re.compile(rb'"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')


def decode(body: bytes) -> ReviewRequest:
    """Read a review of a pod.

    Raises:
        RecursionError: deeper than the parser can read.
        UnreadableReview: the body is no such review.
    """
    try:
        review = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableReview(uid_in(body), f"the pod cannot be read: {error}") from None
    asked = review.request
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise UnreadableReview(asked.uid, f"{review.api_version} {review.kind} is not {API_VERSION} {KIND}")
    found = (_with_spec(asked.object), _with_spec(asked.old_object))
    return ReviewRequest(asked.uid, asked.operation, asked.sub_resource, asked.user_info, *found)


def _with_spec(pod: PodJson | None) -> Json | None:
    return None if pod is None else {"metadata": {}, "spec": {}, **pod}


def uid_in(body: bytes) -> str:
    """Return the first UID in a body that cannot be read, empty where there is none.

    The API server writes the request's UID before any field of the pod.
    """
    match = _UID.search(body)
    return match[1].decode() if match else ""


def allow(uid: str, patch: Sequence[Operation] = (), warnings: Sequence[str] = ()) -> bytes:
    """Return the answer that allows the request, changed by the patch; kubectl prints the warnings."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if warnings:
        response["warnings"] = list(warnings)
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
