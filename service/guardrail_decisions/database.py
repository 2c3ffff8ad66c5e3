"""A database of decisions: its version, and transactions in which writers take turns."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from guardrail_decisions.tables import HEAD
from guardrail_service.errors import ConfigurationError, MissingExtra
from guardrail_service.inference.store import write_ahead

_LOG = logging.getLogger(__name__)
LATEST = "0002"
WHERE = "GUARDRAIL_DECISIONS_URL"
_BUSY_S = 5.0
"""Seconds that a writer of SQLite waits for another one."""


class Database:
    """A database at a URL; nothing is connected before the first transaction.

    Args:
        url: `sqlite:///FILE` or `postgresql://...`.
        synchronous: Whether a committed transaction survives the loss of power, not only the end of
            the process (SQLite; PostgreSQL has its own setting).

    Raises:
        ConfigurationError: If the URL names nothing that can be opened.
        MissingExtra: If the driver is not installed.
    """

    def __init__(self, url: str, *, synchronous: bool = False) -> None:
        self.is_sqlite = url.startswith("sqlite")
        self._engine = _engine(url)
        self._file = self._engine.url.database if self.is_sqlite else None
        if self.is_sqlite:
            _prepare_sqlite(self._engine, synchronous)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection on which all reads see one state."""
        with self._engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction of its own; the writers of a store take turns."""
        with self._engine.connect() as connection:
            connection = connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def version(self) -> str | None:
        """Return the version of the tables; None: there are none yet."""
        with self.reading() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if found is None else str(found)

    def migrate(self, target: str = LATEST) -> None:
        """Bring the tables to a version; several may try at once.

        Raises:
            ConfigurationError: If the tables are those of a later release.
        """
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(7243011)"))
            config.attributes["connection"] = connection
            before = self._version_on(connection)
            if (before or "0000") > target:
                found, expected = "a later release's tables", "this release's or older ones"
                raise ConfigurationError(WHERE, found, expected)
            logging.getLogger("alembic").setLevel(logging.WARNING)  # else a line for every step
            command.upgrade(config, target)
        if before != target:
            _LOG.info("decisions: tables of version %s, before: %s", target, before or "none")

    def ready(self, *, create: bool = True, named_by: str = WHERE) -> None:
        """Make the tables of an empty database; refuse those of other releases.

        Args:
            create: Make tables, and SQLite's file; else a database without them is refused.
            named_by: The option or setting that has the URL, for errors.

        Raises:
            ConfigurationError: If the tables are not this release's, or the database is away.
        """
        if not create and self._lacks_file():
            raise ConfigurationError(named_by, f"no file {self._file}", "a store")
        try:
            found = self.version()
            if found is None and create:
                self.migrate()
            elif found != LATEST:
                shown = "no store" if found is None else f"tables of version {found}"
                expected = f"version {LATEST}; run `guardrail decisions migrate`"
                raise ConfigurationError(named_by, shown, expected)
        except SQLAlchemyError as error:
            found, expected = _short(error), "a database that answers"
            raise ConfigurationError(named_by, found, expected) from error

    def checkpoint(self) -> None:
        """Write everything into the main file, so that nothing deleted is left beside it."""
        if not self.is_sqlite:
            return
        raw = self._engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            raw.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _lacks_file(self) -> bool:
        """Return whether a connection would make SQLite's file."""
        if not self._file or self._file == ":memory:" or self._file.startswith("file:"):
            return False
        return not Path(self._file).exists()

    @staticmethod
    def _version_on(connection: Connection) -> str | None:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if found is None else str(found)


def lock_head(connection: Connection) -> Any:
    """Return the end of the chain; whoever else wants to write waits for this transaction."""
    return connection.execute(select(HEAD).where(HEAD.c.id == 1).with_for_update()).one()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        options: dict[str, Any] = {}
        if parsed.drivername.startswith("sqlite"):
            options["connect_args"] = {"timeout": _BUSY_S, "check_same_thread": False}
        else:
            options |= {
                "pool_pre_ping": True,
                "connect_args": {"connect_timeout": 5, "tcp_user_timeout": 10_000},
            }
        return create_engine(parsed, **options)
    except ModuleNotFoundError as error:
        raise MissingExtra("rag-guardrail[postgres]") from error
    except (ArgumentError, NoSuchModuleError) as error:
        expected = "sqlite:///FILE or postgresql://USER@HOST/NAME"
        raise ConfigurationError(WHERE, "no such URL", expected) from error


def _prepare_sqlite(engine: Engine, synchronous: bool) -> None:
    """Let writers beside readers, ask for the write lock at once, and overwrite what is deleted."""

    @event.listens_for(engine, "connect")
    def connected(raw: Any, _: Any) -> None:
        raw.isolation_level = None  # transactions begin where the next function says
        cursor = raw.cursor()
        write_ahead(raw)
        cursor.execute(f"PRAGMA synchronous={'FULL' if synchronous else 'NORMAL'}")
        cursor.execute("PRAGMA secure_delete=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def began(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _short(error: SQLAlchemyError) -> str:
    """Return what kind of fault it is; messages of drivers may have addresses and values."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return type(cause).__name__
