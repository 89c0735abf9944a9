"""Five-minute series of containers and cards."""

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "series",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("key", sa.LargeBinary(16), nullable=False),
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("gpu", sa.String(64), nullable=False),
        sa.Column("pod_uid", sa.String(64), nullable=False),
        sa.Column("container", sa.String(80), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
        sa.UniqueConstraint("key", name="uq_series_key"),
    )
    op.create_index("ix_series_gpu", "series", ["gpu"])
    op.create_index("ix_series_pod_uid", "series", ["pod_uid"])
    op.create_table(
        "points",
        sa.Column("series_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("slot", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("from_ms", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.Column("used_ms", sa.Integer, nullable=False),
        sa.Column("used_mib", sa.Integer),
        *(sa.Column(f"{cause}_ms", sa.BigInteger) for cause in ("turn", "share", "drain", "queued")),
        sa.Column("celsius", sa.Integer),
        sa.Column("watts", sa.Integer),
        sa.PrimaryKeyConstraint("series_id", "slot", "from_ms", name="pk_points"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_points_slot", "points", ["slot"])
