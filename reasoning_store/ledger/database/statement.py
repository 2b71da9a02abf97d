"""A Core statement, compiled once for each dialect and run past the Core.

The statements are written in SQLAlchemy's expressions, so that there is one text of each for
both engines. The compiled string runs on the driver's own cursor, which is sound because every
value here is an int, a str, bytes or None, which no driver needs converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.sql.elements import ClauseElement

Params = Mapping[str, Any] | tuple[Any, ...]
"""By name; or by place, where the statement was given their order."""
STREAMS = "streams"
"""The option of an engine whose cursors have a ``stream`` that takes a size."""


SCHEMA = "schema_of_store"
"""The option of a connection to a server: the schema in which every table is."""


class _Compiled(NamedTuple):
    text: str
    names: tuple[str, ...] | None
    """Of the parameters, in order, where the driver takes them by place."""
    constants: dict[str, Any]
    """The values that the expression itself holds."""
    options: dict[str, Any]
    """Further arguments of the driver's ``execute``."""


# Numbers and bytes come as they are, and not as text that is parsed again.
_OPTIONS = {"psycopg": {"binary": True}}


class Statement:
    """One statement. Its parameters are given by name, all of them.

    ``order`` names them as they are in the statement: to a driver that takes them by
    place (SQLite's) they may then be given as a tuple, as it takes them.
    """

    __slots__ = ("_compiled", "_order", "_statement")

    def __init__(self, statement: ClauseElement, order: Sequence[str] = ()) -> None:
        self._statement = statement
        self._order = tuple(order)
        self._compiled: dict[tuple[str, str | None], _Compiled] = {}

    def _for(self, connection: Connection) -> _Compiled:
        dialect, schema = connection.dialect, schema_of(connection)
        compiled = self._compiled.get((dialect.name, schema))
        if compiled is None:
            place: dict[str, Any] = {}
            if schema is not None:
                place = {"schema_translate_map": {None: schema}, "render_schema_translate": True}
            made: Any = self._statement.compile(dialect=dialect, **place)
            names = tuple(made.positiontup) if made.positional else None
            if self._order and names not in (None, self._order):
                raise ValueError(f"the parameters stand in another order: {names}")
            compiled = self._compiled[dialect.name, schema] = _Compiled(
                made.string,
                names,
                {name: bind.value for name, bind in made.binds.items() if not bind.required},
                _OPTIONS.get(dialect.driver, {}),
            )
        return compiled

    def text(self, connection: Connection) -> str:
        """Return it as the driver runs it, for a caller with several on one cursor."""
        return self._for(connection).text

    def _bound(self, connection: Connection, params: Params) -> tuple[Any, str, Any, Any]:
        """Return a cursor, the text, its parameters as the driver takes them, and the options."""
        text, names, constants, options = self._for(connection)
        given = params if type(params) is tuple else _given(params, names, constants)
        return driver(connection).cursor(), text, given, options

    def rows(self, connection: Connection, params: Params) -> list[tuple[Any, ...]]:
        """Run it and return every row, as the driver gave it."""
        cursor, text, given, options = self._bound(connection, params)
        cursor.execute(text, given, **options)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    @contextmanager
    def pages(
        self, connection: Connection, params: Params, size: int
    ) -> Iterator[Iterator[list[tuple[Any, ...]]]]:
        """Run it and give its rows, ``size`` at a time.

        A statement that is left in the middle holds its snapshot beyond the transaction, for
        as long as anyone keeps the traceback: so it ends here.
        """
        cursor, text, given, options = self._bound(connection, params)
        with closing(cursor):
            cursor.execute(text, given, **options)
            yield iter(partial(cursor.fetchmany, size), [])

    @contextmanager
    def streamed(
        self, connection: Connection, params: Params, size: int
    ) -> Iterator[Iterator[tuple[Any, ...]]]:
        """Give its rows one by one, taken from the driver ``size`` at a time.

        If the driver can, they are read while the server makes the next ones. So nothing else is
        run on the connection from the first row to the last.
        """
        cursor, text, given, options = self._bound(connection, params)
        if connection.get_execution_options().get(STREAMS):
            with closing(cursor.stream(text, given, size=size, **options)) as rows:
                yield rows
            return
        with closing(cursor):
            cursor.execute(text, given, **options)
            yield chain.from_iterable(iter(partial(cursor.fetchmany, size), []))

    def row(self, connection: Connection, params: Params) -> tuple[Any, ...] | None:
        """Run it and return its one row, or None."""
        cursor, text, given, options = self._bound(connection, params)
        cursor.execute(text, given, **options)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows[0] if rows else None

    def run(self, connection: Connection, params: Params) -> None:
        """Run it."""
        cursor, text, given, options = self._bound(connection, params)
        cursor.execute(text, given, **options)

    def many(self, connection: Connection, rows: Sequence[Params]) -> None:
        """Run it once for each of ``rows``."""
        if not rows:
            return
        text, names, constants, _ = self._for(connection)
        given: Any = rows
        if type(rows[0]) is not tuple:
            given = [_given(row, names, constants) for row in rows]
        driver(connection).cursor().executemany(text, given)


def _given(params: Any, names: Sequence[str] | None, constants: Mapping[str, Any]) -> Any:
    """Return parameters that were given by name as the driver takes them."""
    if constants:
        params = {**constants, **params}
    return params if names is None else [params[name] for name in names]


def schema_of(connection: Connection) -> str | None:
    """Return the schema of the store's tables on a server; None for a file."""
    found: str | None = connection.get_execution_options().get(SCHEMA)
    return found


def quoted(name: str) -> str:
    """Return the name of a schema or a table as SQL has it."""
    return '"{}"'.format(name.replace('"', '""'))


def driver(connection: Connection) -> Any:
    """Return the driver's own connection, in the transaction that this one has begun."""
    # What a synchronous driver gave is its own connection, with nothing around it.
    return connection.connection.dbapi_connection


def by_dialect(make: Callable[[Any], Any]) -> Callable[[Connection], Statement]:
    """Return a statement that each dialect has an ``insert`` of its own for.

    It is made for the dialect that is in use: the other one's module is never loaded.
    """

    @cache
    def made(name: str) -> Statement:
        return Statement(make(import_module(f"sqlalchemy.dialects.{name}").insert))

    return lambda connection: made(connection.dialect.name)
