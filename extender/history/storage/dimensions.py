"""The rows that usage refers to: workloads (namespace, owner, labels) and cards; each is stored once."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select, tuple_

from extender.history.recording.events import CardShare, Decision
from extender.history.storage import statements
from extender.history.storage.journal import KEY_BYTES
from extender.history.storage.tables import CardRow, WorkloadRow
from vgpu.domain.identifiers import CardUuid, NodeName

CardKey = tuple[CardUuid, str, str]  # UUID, node, model


def workload_digest(decision: Decision) -> bytes:
    """Return what identifies the workload that a pod belongs to."""
    owner, labels = decision.owner, sorted(decision.labels.items())
    text = json.dumps([decision.pod.namespace, owner.kind, owner.name, labels])
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def workload_ids(connection: Connection, decisions: Iterable[Decision]) -> Mapping[bytes, int]:
    """Return the ID of each decision's workload, by digest; insert those that are new."""
    wanted = {workload_digest(decision): decision for decision in decisions}
    found = _workloads(connection, wanted)
    new = [_workload(digest, workload) for digest, workload in wanted.items() if digest not in found]
    statements.insert_new(connection, WorkloadRow, new)
    return _workloads(connection, wanted) if new else found


def card_key(node: NodeName, card: CardShare) -> CardKey:
    """Return what identifies a card on a node."""
    return card.gpu, node, card.model


def card_ids(connection: Connection, wanted: Iterable[tuple[NodeName, CardShare]]) -> Mapping[CardKey, int]:
    """Return the ID of each node's card; insert those that are new."""
    cards = {card_key(node, card): card for node, card in wanted}
    found = _cards(connection, cards)
    new = [_card(key, card) for key, card in cards.items() if key not in found]
    statements.insert_new(connection, CardRow, new)
    return _cards(connection, cards) if new else found


def _workloads(connection: Connection, digests: Iterable[bytes]) -> dict[bytes, int]:
    chosen = select(WorkloadRow.digest, WorkloadRow.id).where(WorkloadRow.digest.in_(list(digests)))
    return {row.digest: row.id for row in connection.execute(chosen)}


def _workload(digest: bytes, decision: Decision) -> dict[str, Any]:
    owner = f"{decision.owner.kind}/{decision.owner.name}"
    return {
        "digest": digest,
        "namespace": decision.pod.namespace,
        "owner": owner,
        "labels": dict(sorted(decision.labels.items())),
    }


def _cards(connection: Connection, keys: Iterable[CardKey]) -> dict[CardKey, int]:
    columns = (CardRow.gpu, CardRow.node, CardRow.model)
    chosen = select(CardRow.id, *columns).where(tuple_(*columns).in_(list(keys)))
    return {(row.gpu, row.node, row.model): row.id for row in connection.execute(chosen)}


def _card(key: CardKey, card: CardShare) -> dict[str, Any]:
    gpu, node, model = key
    return {"gpu": gpu, "node": node, "model": model, "index": card.index, "card_mib": card.card_mib}
