"""The tables of a store as SQLAlchemy sees them; `migrations/versions` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table, Text

METADATA = MetaData()

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("record_id", String(32), nullable=False, unique=True),
    Column("request_id", String(64), nullable=False, index=True),
    Column("item", Integer, nullable=False),
    Column("time", String(32), nullable=False, index=True),
    Column("caller", String(128), nullable=False, index=True),
    Column("route", String(32), nullable=False),
    Column("policy", Text, nullable=False),
    Column("policy_version", Text, nullable=False),
    Column("policy_hash", String(64), nullable=False),
    Column("decision", String(8), nullable=False),
    Column("action", String(8), nullable=False),
    Column("status", String(8), nullable=False),
    Column("flagged", Text, nullable=False),
    Column("share", Float, nullable=False),
    Column("body", Text, nullable=False),
)
"""One row per judged sample. `time` is ISO 8601 in UTC with microseconds; `flagged` has the names
of the detectors that flagged between commas, `,pii,secrets,`; `body` is JSON."""

TEXTS = Table(
    "texts",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("mode", String(8), nullable=False),
    Column("body", Text, nullable=True),
    Column("wrapped", Text, nullable=True),
)
"""What is kept of a decision's texts; no row where nothing is."""

FEEDBACK = Table(
    "feedback",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("decision_seq", BigInteger, nullable=False, index=True),
    Column("time", String(32), nullable=False),
    Column("caller", String(128), nullable=False),
    Column("label", String(8), nullable=False),
    Column("metric", Text, nullable=True),
    Column("draw", String(32), nullable=True),
    Column("mode", String(8), nullable=False),
    Column("comment", Text, nullable=True),
    Column("wrapped", Text, nullable=True),
)
"""What people said of decisions. A later word of the same person replaces an earlier one."""

CHAIN = Table(
    "chain",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String(12), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("body", Text, nullable=True),
)
"""Everything that was written, in order. `hash` covers the row and the hash before it."""

HEAD = Table(
    "head",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("seal", String(64), nullable=True),
    Column("key", String(8), nullable=True),
)
"""One row: where the chain ends. Writers lock it, so entries have one order."""

VIEWS = Table(
    "views",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("decision_seq", BigInteger, nullable=False, index=True),
    Column("time", String(32), nullable=False),
    Column("viewer", String(128), nullable=False),
)
"""Who read the texts of which decision."""

DRAWS = Table(
    "draws",
    METADATA,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(32), nullable=False, unique=True),
    Column("time", String(32), nullable=False),
    Column("body", Text, nullable=False),
)
"""Samples that were drawn: from what, how many of each stratum, and which decisions."""

POLICIES = Table(
    "policies",
    METADATA,
    Column("policy_hash", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("calibration", Text, nullable=False),
    Column("parameters", Text, nullable=False),
)
"""The policies that were served, with what was promised of them and their detectors' parameters."""
