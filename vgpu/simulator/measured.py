"""What simulated pods use of their cards: constant GPU time that follows from the pod's UID, and half of its memory."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from vgpu.domain.asks.request import ContainerKind
from vgpu.domain.cards import measured_card, measured_use
from vgpu.domain.cards.device import Node
from vgpu.domain.cards.measured_card import CardSensors
from vgpu.domain.cards.measured_use import MeasuredUse
from vgpu.domain.identifiers import NO_CONTAINER, NO_POD, CardUuid
from vgpu.domain.json_types import JsonObject
from vgpu.domain.quantity import FULL_CORES
from vgpu.simulator import card_usage

PERIOD_MS: Final = 10_000  # between two reports
IDLE_CORES: Final = 10  # that a container without guaranteed time finds idle
WAIT_PART: Final = 8  # launches wait for an eighth of the time used, and a sixteenth because the share is used up
COOL: Final = 40  # degrees Celsius, and watts, of an idle card
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000


class NodeMeter:
    """Counts what a node's cards were used, from its start on; the count begins anew each hour."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._from_ms = self._until_ms = 0
        self._busy_ms: dict[CardUuid, int] = {}

    def status(self, pods: Iterable[JsonObject], now: datetime) -> JsonObject:
        """Return what a node's status says of what these running pods use, and of its cards."""
        uses = entries(pods, now)
        used = {card.uuid: [use for use in uses if use["gpu"] == card.uuid] for card in self._node.cards}
        percent = {uuid: min(FULL_CORES, sum(use["percent"] for use in own)) for uuid, own in used.items()}
        self._count(percent, _until_ms(now))
        periods = [
            MeasuredUse(NO_POD, NO_CONTAINER, uuid, self._from_ms, self._until_ms, busy_ms)
            for uuid, busy_ms in self._busy_ms.items()
            if self._until_ms > self._from_ms
        ]
        sensors = {
            uuid: CardSensors(sum(use["usedMiB"] for use in own), COOL + percent[uuid] // 2, COOL + 4 * percent[uuid])
            for uuid, own in used.items()
        }
        return {"usage": uses, "cardUse": measured_card.as_json(periods, sensors)}

    def _count(self, percent: Mapping[CardUuid, int], until_ms: int) -> None:
        """Add the time since the last call, at what the cards are used now."""
        if self._from_ms // _HOUR_MS != until_ms // _HOUR_MS:  # also at the first call
            hour_ms = until_ms // _HOUR_MS * _HOUR_MS
            self._from_ms = max(hour_ms, self._until_ms) if self._until_ms else until_ms
            self._until_ms, self._busy_ms = self._from_ms, {}
        lasted_ms, self._until_ms = max(0, until_ms - self._until_ms), until_ms
        for uuid, used in percent.items():
            self._busy_ms[uuid] = self._busy_ms.get(uuid, 0) + used * lasted_ms // FULL_CORES


def entries(pods: Iterable[JsonObject], now: datetime) -> list[JsonObject]:
    """Return the entries of `status.usage` of a node with these running pods; they change every ten seconds."""
    until_ms = _until_ms(now)
    found = [measured_use.as_json(use) for pod in pods for use in _uses(pod, until_ms)]
    return found[: measured_use.MAX_ENTRIES]


def _uses(pod: JsonObject, until_ms: int) -> Iterator[MeasuredUse]:
    held = card_usage.granted(pod)
    started = pod["status"].get("startTime")
    started_ms = int(datetime.fromisoformat(started).timestamp() * 1000) if started else until_ms
    from_ms = max(started_ms, until_ms // _HOUR_MS * _HOUR_MS)
    if held is None or until_ms <= from_ms:
        return
    uid, lasted = pod["metadata"]["uid"], until_ms - from_ms
    ended = {container.name for container in held[0].containers if container.kind is ContainerKind.INIT}
    for container, grants in held[1].containers.items():
        for grant in grants if container not in ended else ():
            most = FULL_CORES if grant.whole else grant.cores or IDLE_CORES
            percent = _part(uid + container) * most // FULL_CORES
            levels = (*[0] * measured_use.level_of(percent), lasted // _MINUTE_MS)
            memory = grant.memory_mib // 2
            used = percent * lasted // FULL_CORES
            yield MeasuredUse(
                pod_uid=uid,
                container=container,
                gpu=grant.gpu,
                from_ms=from_ms,
                until_ms=until_ms,
                gpu_ms=used,
                percent=percent,
                used_mib=memory,
                peak_mib=memory,
                levels=levels if levels[-1] else (),
                idle_ms=0,
                wait_ms=(used // WAIT_PART, used // (2 * WAIT_PART), 0, 0),
            )


def _until_ms(now: datetime) -> int:
    """Return when the last period ended."""
    return int(now.timestamp() * 1000) // PERIOD_MS * PERIOD_MS


def _part(text: str) -> int:
    """Return a percentage from 10 to 90."""
    return 10 + zlib.crc32(text.encode()) % 81
