"""The journal of events, and what pods took of cards."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "events",
        sa.Column("id", BIG, nullable=False, autoincrement=True),
        sa.Column("key", sa.LargeBinary(16), nullable=False),
        sa.Column("rank", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("pod_uid", sa.String(64), nullable=False),
        sa.Column("pod", sa.String(253), nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("gpu", sa.String(64), nullable=False),
        sa.Column("payload", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("key", name="uq_events_key"),
    )
    op.create_index("ix_events_at_ms_id", "events", ["at_ms", "id"])
    op.create_index("ix_events_namespace_at_ms_id", "events", ["namespace", "at_ms", "id"])
    op.create_index("ix_events_pod_at_ms_id", "events", ["pod", "at_ms", "id"])
    op.create_index("ix_events_pod_uid", "events", ["pod_uid"])
    op.create_table(
        "workloads",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("owner", sa.String(320), nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workloads"),
        sa.UniqueConstraint("digest", name="uq_workloads_digest"),
    )
    op.create_table(
        "cards",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("gpu", sa.String(64), nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("model", sa.String(96), nullable=False),
        sa.Column("index", sa.Integer, nullable=False),
        sa.Column("card_mib", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cards"),
        sa.UniqueConstraint("gpu", "node", "model", name="uq_cards_gpu_node_model"),
    )
    op.create_table(
        "pods",
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("workload_id", sa.Integer, nullable=False),
        sa.Column("bound_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_after_ms", sa.BigInteger),
        sa.Column("ended_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("uid", name="pk_pods"),
    )
    op.create_index("ix_pods_namespace_name", "pods", ["namespace", "name"])
    op.create_index("ix_pods_ended_ms", "pods", ["ended_ms"])
    op.create_table(
        "holdings",
        sa.Column("pod_uid", sa.String(64), nullable=False),
        sa.Column("card_id", sa.Integer, nullable=False),
        sa.Column("from_ms", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.Column("workload_id", sa.Integer, nullable=False),
        sa.Column("share", sa.Double, nullable=False),
        sa.Column("cores", sa.Integer, nullable=False),
        sa.Column("memory_mib", sa.Integer, nullable=False),
        sa.Column("bound", sa.Integer, nullable=False),
        sa.Column("waited_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("pod_uid", "card_id", "from_ms", name="pk_holdings"),
    )
    op.create_index("ix_holdings_until_ms_from_ms", "holdings", ["until_ms", "from_ms"])
    op.create_table(
        "replicas",
        sa.Column("name", sa.String(320), nullable=False),
        sa.Column("watched_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_replicas"),
    )
    progress = op.create_table(
        "progress",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("rolled_until_hour", sa.Integer),
        sa.Column("purged_until_hour", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_progress"),
    )
    op.bulk_insert(progress, [{"id": 1, "rolled_until_hour": None, "purged_until_hour": 0}])
