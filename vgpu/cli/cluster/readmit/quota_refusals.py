"""Refusals by a ResourceQuota: whether it would refuse a new pod too once the old pod, of the same name, has ended.

The API server names the quota and the resources that are exceeded, with their amounts:
`exceeded quota: NAME, requested: pods=1, used: pods=10, limited: pods=10`. The source is `checkRequest` in
k8s.io/apiserver/pkg/admission/plugin/resourcequota.
"""

import re
from typing import Final

from vgpu.domain import names
from vgpu.domain.asks import host_request

_REFUSAL: Final = re.compile(r"exceeded quota: \S+, requested: \S+, used: (\S+), limited: (\S+)")
_ADDED: Final = frozenset(f"requests.{name}" for name in names.KUBELET_RESOURCES)


def is_refusal(message: str) -> bool:
    """Whether a ResourceQuota refused an object."""
    return _REFUSAL.search(message) is not None


def lacking(message: str) -> list[str]:
    """Return the resources that a quota would refuse to the new pod once the old one has ended.

    Both versions request the same, so the old one leaves what the new one requests, except for what the webhook adds to
    the new one. A quota that is exceeded already, because it was lowered, refuses the new one all the same.
    """
    found = _REFUSAL.search(message)
    if found is None:
        return []
    used, limited = map(_amounts, found.groups())
    return [name for name in used if name in _ADDED or used[name] > limited.get(name, 0)]


def _amounts(text: str) -> dict[str, int]:
    pairs = (pair.partition("=") for pair in text.rstrip(",").split(","))
    return {name: host_request.thousandths(amount) for name, _, amount in pairs}
