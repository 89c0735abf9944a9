"""Of measured GPU time: the container, its peak of memory, and a histogram of the minutes."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("used", sa.Column("container", sa.String(80), nullable=False, server_default=""))
    op.add_column("used", sa.Column("peak_mib", sa.Integer, nullable=False, server_default="0"))
    op.add_column("used", sa.Column("levels", sa.String(255), nullable=False, server_default=""))
    op.create_index("ix_used_pod_uid", "used", ["pod_uid"])
