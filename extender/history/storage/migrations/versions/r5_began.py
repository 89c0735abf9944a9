"""When the history began: a report about a time before that would look complete."""

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"
HOUR_MS = 3_600_000


def upgrade() -> None:
    """Add the column; a history that has something began with the oldest of it."""
    op.add_column("progress", sa.Column("began_ms", sa.BigInteger, nullable=False, server_default="0"))
    connection = op.get_bind()
    oldest_ms = connection.scalar(sa.text("SELECT MIN(at_ms) FROM events"))
    hour = connection.scalar(sa.text("SELECT MIN(hour) FROM usage_hours"))
    known = [at_ms for at_ms in (oldest_ms, hour and hour * HOUR_MS) if at_ms is not None]
    if known:
        connection.execute(sa.text("UPDATE progress SET began_ms = :at").bindparams(at=max(0, int(min(known)))))
