"""Where the leading replica's admin REST is: an annotation of the Lease that it holds.

Replicas that share no database of the history relay questions about it to the leading one. They send the caller's token
along, so the annotation also says by which certificate the leading replica is known. Who may write the Lease may bind.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from extender.state.objects import WatchedLease
from vgpu.domain import names


class AdminAddress(msgspec.Struct, frozen=True):
    """An address of an admin REST.

    Attributes:
        url: without a path.
        certificate_sha256: of its certificate in DER, in hexadecimal; empty where it serves no TLS, on loopback.
    """

    url: str
    certificate_sha256: str = ""


class _Published(msgspec.Struct):
    """The annotation. A holder that knows no annotations leaves that of the last holder, so it names its holder."""

    holder: str
    url: str
    certificate_sha256: str = ""


@dataclass(frozen=True, slots=True)
class LeadingReplica:
    """The replica that holds the Lease, or held it last.

    Attributes:
        identity: empty where no replica is known.
        is_here: whether it is this one.
        address: of its admin REST; None where it has published none.
    """

    identity: str
    is_here: bool
    address: AdminAddress | None = None


THIS_ONE: Final = LeadingReplica("", is_here=True)


def annotations(holder: str, address: AdminAddress) -> dict[str, str]:
    """Return the annotations of the Lease of a holder."""
    published = _Published(holder, address.url, address.certificate_sha256)
    return {names.ADMIN_ANNOTATION: msgspec.json.encode(published).decode()}


def leading(lease: WatchedLease | None, identity: str) -> LeadingReplica:
    """Return which replica leads, as a Lease shows it to the replica `identity`.

    An expired Lease counts: until another replica has it, nobody knows more than its last holder.
    """
    holder = lease.holder if lease else ""
    return LeadingReplica(holder, is_here=bool(holder) and holder == identity, address=_address(lease))


def _address(lease: WatchedLease | None) -> AdminAddress | None:
    try:
        found = msgspec.json.decode(lease.admin if lease else "", type=_Published)
    except msgspec.DecodeError:
        return None
    is_current = lease is not None and found.holder == lease.holder
    return AdminAddress(found.url, found.certificate_sha256) if is_current else None
