"""Runs migrations on the connection that `guardrail_decisions.database` hands over."""

from alembic import context

from guardrail_decisions.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
