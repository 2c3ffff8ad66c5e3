"""Decisions, their texts, feedback and the chain."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of version 1."""
    op.create_table(
        "decisions",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("record_id", sa.String(32), nullable=False, unique=True),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("item", sa.Integer, nullable=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("caller", sa.String(128), nullable=False),
        sa.Column("route", sa.String(32), nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("policy_version", sa.Text, nullable=False),
        sa.Column("policy_hash", sa.String(64), nullable=False),
        sa.Column("decision", sa.String(8), nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("flagged", sa.Text, nullable=False),
        sa.Column("share", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    for column in ("request_id", "time", "caller"):
        op.create_index(f"ix_decisions_{column}", "decisions", [column])
    op.create_table(
        "texts",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("mode", sa.String(8), nullable=False),
        sa.Column("body", sa.Text),
        sa.Column("wrapped", sa.Text),
    )
    op.create_table(
        "feedback",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("decision_seq", sa.BigInteger, nullable=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("caller", sa.String(128), nullable=False),
        sa.Column("label", sa.String(8), nullable=False),
        sa.Column("metric", sa.Text),
        sa.Column("mode", sa.String(8), nullable=False),
        sa.Column("comment", sa.Text),
        sa.Column("wrapped", sa.Text),
    )
    op.create_index("ix_feedback_decision_seq", "feedback", ["decision_seq"])
    op.create_table(
        "chain",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("body", sa.Text),
    )
    head = op.create_table(
        "head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("seal", sa.String(64)),
        sa.Column("key", sa.String(8)),
    )
    op.bulk_insert(head, [{"id": 1, "seq": 0, "hash": "0" * 64, "seal": None, "key": None}])
