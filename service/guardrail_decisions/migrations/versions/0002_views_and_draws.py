"""Views of texts, drawn samples and served policies; feedback names the draw it belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make of version 1 the tables of version 2."""
    op.add_column("feedback", sa.Column("draw", sa.String(32)))
    op.create_table(
        "views",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("decision_seq", sa.BigInteger, nullable=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("viewer", sa.String(128), nullable=False),
    )
    op.create_index("ix_views_decision_seq", "views", ["decision_seq"])
    op.create_table(
        "draws",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "policies",
        sa.Column("policy_hash", sa.String(64), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("calibration", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
    )
