"""Measured GPU time, and usage by the hour and by the day."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "used",
        sa.Column("key", sa.LargeBinary(16), nullable=False),
        sa.Column("from_ms", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.Column("pod_uid", sa.String(64), nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("gpu", sa.String(64), nullable=False),
        sa.Column("gpu_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_used"),
    )
    op.create_index("ix_used_until_ms_from_ms", "used", ["until_ms", "from_ms"])
    for table, period in (("usage_hours", "hour"), ("usage_days", "day")):
        op.create_table(
            table,
            sa.Column(period, sa.Integer, nullable=False),
            sa.Column("workload_id", sa.Integer, nullable=False),
            sa.Column("card_id", sa.Integer, nullable=False),
            sa.Column("share_ms", sa.Double, nullable=False),
            sa.Column("cores_ms", sa.Double, nullable=False),
            sa.Column("mib_ms", sa.Double, nullable=False),
            sa.Column("used_ms", sa.Double),
            sa.Column("bound", sa.Integer, nullable=False),
            sa.Column("waited_ms", sa.Double, nullable=False),
            sa.PrimaryKeyConstraint(period, "workload_id", "card_id", name=f"pk_{table}"),
        )
