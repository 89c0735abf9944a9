"""What Alembic runs: the migrations, on the connection that `database.migrate` has opened."""

from alembic import context

from extender.history.storage.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata)
with context.begin_transaction():
    context.run_migrations()
