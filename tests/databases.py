"""Databases of a PostgreSQL server: new ones, and empty ones with the schema that are lent.

A lent database is emptied when it comes back and lent again: that costs the server a tenth of
making one. One that has grown, or whose schema, settings or statistics were changed, is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from sqlalchemy import URL, Connection, NullPool, create_engine

from reasoning_store.ledger.database import opening

# Each change of an object leaves a row with the number of another transaction.
_OBJECTS = "SELECT %r, count(*), sum(xmin::text::bigint) FROM %s WHERE %s >= 16384"
_CATALOGS = {
    "pg_proc": "oid",
    "pg_type": "oid",
    "pg_constraint": "oid",
    "pg_trigger": "oid",
    "pg_attribute": "attrelid",
    "pg_statistic": "starelid",
}
_SCHEMA = " UNION ALL ".join(
    [
        *(_OBJECTS % (catalog, catalog, key) for catalog, key in _CATALOGS.items()),
        "SELECT version_num, 0, 0 FROM alembic_version",
        "SELECT array_to_string(setconfig, ','), 0, 0 FROM pg_db_role_setting"
        " JOIN pg_database ON setdatabase = pg_database.oid WHERE datname = current_database()",
    ]
)
_TABLES = (
    "SELECT quote_ident(tablename) FROM pg_tables"
    " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
)
_PAGES = "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE oid >= 16384 AND relkind = 'r'"
_GROWN = 4 * 1024 * 1024
"""Bytes of tables from which a new database is cheaper than an emptied one."""
_OTHERS = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Databases:
    """The databases that one process of the tests uses."""

    def __init__(self, server: URL) -> None:
        self._server = server
        self._admin = create_engine(server, isolation_level="AUTOCOMMIT")
        self._numbers = count()
        self._made: list[str] = []
        self._free: list[URL] = []
        with self._admin.connect() as connection:
            version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
        # A copy of the files, which is not written to the log too, costs half.
        self._copied = " STRATEGY FILE_COPY" if version >= 150_000 else ""
        template = self.create()
        opening.upgrade(opening.with_schema(template, "public"))
        self.template = str(template.database)
        with _connected(template) as connection:
            self._schema = _schema_of(connection)
            tables = connection.exec_driver_sql(_TABLES).scalars().all()
        # Rows are deleted, since TRUNCATE makes fifty new files; no trigger asks for an order.
        deletions = "; ".join(map("DELETE FROM {}".format, tables))
        self._empty = f"SET session_replication_role = replica; {deletions}"

    def create(self, template: str = "template0", encoding: str = "UTF8") -> URL:
        """Make a database; it goes when the tests end."""
        name = f"rs_{os.getpid()}_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING '{encoding}'{self._copied}")
        self._made.append(name)
        return self._server.set(database=name)

    @contextmanager
    def lend(self) -> Iterator[URL]:
        """Give a database with the schema and no rows."""
        url = self._free.pop() if self._free else self.create(self.template)
        yield url
        if self._is_emptied(url):
            self._free.append(url)
        else:
            self._drop(str(url.database))

    def close(self) -> None:
        for name in [*self._made]:
            self._drop(name)
        self._admin.dispose()

    def _is_emptied(self, url: URL) -> bool:
        """Take the rows out of a database that is otherwise as it was made."""
        with _connected(url) as connection:
            connection.exec_driver_sql(_OTHERS)
            if _schema_of(connection) != self._schema:
                return False
            if connection.exec_driver_sql(_PAGES).scalar_one() > _GROWN:
                return False
            connection.exec_driver_sql(self._empty)
        return True

    def _drop(self, name: str) -> None:
        self._run(f"DROP DATABASE {name} WITH (FORCE)")
        self._made.remove(name)

    def _run(self, statement: str) -> None:
        with self._admin.connect() as connection:
            connection.exec_driver_sql(statement)


def _schema_of(connection: Connection) -> list[Any]:
    return sorted(map(tuple, connection.exec_driver_sql(_SCHEMA)), key=repr)


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    made = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with made.connect() as connection:
        yield connection
