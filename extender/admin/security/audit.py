"""Records each admin action as one structured log line: the caller, the action, the object and the outcome."""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from extender.admin.security.access import Caller
from vgpu.domain.identifiers import CardUuid, NodeName

log = logging.getLogger("extender.audit")
PREFIX: Final = "admin action "


@dataclass(frozen=True, slots=True)
class AuditedAction:
    """One admin action.

    Attributes:
        at: when, in UTC, as RFC 3339 has it.
        user: name of the caller, as the API server knows it.
        groups: of the caller.
        action: `cordon` or `uncordon`.
        gpu: UUID of the card.
        node: of the card.
        outcome: `done`, `unchanged`, or why nothing was done.
    """

    at: str
    user: str
    groups: tuple[str, ...]
    action: str
    gpu: CardUuid
    node: NodeName
    outcome: str


class Audit:
    """Writes each action to the log, and to `also`, such as the history. `now` is the wall clock."""

    def __init__(self, now: Callable[[], datetime], also: Callable[[AuditedAction], None] = lambda _: None) -> None:
        self._now = now
        self._also = also

    def record(self, caller: Caller, action: str, gpu: CardUuid, node: NodeName, outcome: str) -> None:
        """Record an action, whether it was done or refused."""
        at = self._now().astimezone(UTC).isoformat(timespec="milliseconds")
        made = AuditedAction(at, caller.name, caller.groups, action, gpu, node, outcome)
        log.info("%s%s", PREFIX, json.dumps(asdict(made), sort_keys=True))
        self._also(made)
