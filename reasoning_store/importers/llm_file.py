"""The logs database of the ``llm`` command line tool, opened to read and to nothing else.

Its tables, in the two layouts that it has had: ``responses`` with prompt and answer side by
side (to 0.31), and messages made of parts, which turns and threads point into (from 0.32,
read here as of 0.36). A file can hold both. Columns came one by one over the versions, so
rows are read whole, and what a column is missing is ``None``.

Knows tables; must not know what becomes of a row.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from reasoning_store import InvalidCall
from reasoning_store.ledger.database import files

R = TypeVar("R", bound=dict[str, Any])


class Row(dict[str, Any]):
    """A row by its columns; a column that this version of the file lacks is ``None``."""

    def __missing__(self, name: str) -> None:
        return None


_OLD: Final = frozenset({"conversations", "responses"})
_NEW: Final = frozenset({"threads", "turns", "messages", "parts"})

_NAMES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_TIP: Final = "SELECT tip_message_hash AS tip FROM threads WHERE id = ?"
_HEADS: Final[Mapping[str, str]] = {
    "responses": "SELECT DISTINCT coalesce(conversation_id, id) AS id, NULL AS name FROM responses",
    "conversations": "SELECT id, name FROM conversations",
    "threads": "SELECT id, name FROM threads",
}
"""The statements that list the conversations of either layout; the last name of one counts."""
_OWNERS: Final[Mapping[str, str]] = {
    "responses": "SELECT coalesce(conversation_id, id) AS owner, id FROM responses ORDER BY id",
    "tool_calls": "SELECT response_id AS owner, id FROM tool_calls ORDER BY id",
    "tool_results": "SELECT response_id AS owner, id FROM tool_results ORDER BY id",
}
"""The statements that list which rows belong to one of another table. llm has no index for these:
they are read once, or each conversation would cost a scan of all."""
_ROW: Final[Mapping[str, str]] = {
    "responses": "SELECT * FROM responses WHERE id = ?",
    "tool_calls": "SELECT * FROM tool_calls WHERE id = ?",
    "tool_results": "SELECT * FROM tool_results WHERE id = ?",
}
_IN_ORDER: Final[Mapping[str, str]] = {
    "prompt_fragments": """
        SELECT f.id, f.content AS text
        FROM prompt_fragments AS p JOIN fragments AS f ON f.id = p.fragment_id
        WHERE p.response_id = ? ORDER BY p."order"
    """,
    "system_fragments": """
        SELECT f.id, f.content AS text
        FROM system_fragments AS p JOIN fragments AS f ON f.id = p.fragment_id
        WHERE p.response_id = ? ORDER BY p."order"
    """,
    "prompt_attachments": """
        SELECT a.* FROM prompt_attachments AS p JOIN attachments AS a ON a.id = p.attachment_id
        WHERE p.response_id = ? ORDER BY p."order"
    """,
    "tool_results_attachments": """
        SELECT a.* FROM tool_results_attachments AS p
        JOIN attachments AS a ON a.id = p.attachment_id
        WHERE p.tool_result_id = ? ORDER BY p."order"
    """,
}
"""The statements that read fragments and attachments, in their order."""


_TEXTS: Final = frozenset(
    {"name", "prompt", "system", "response", "reasoning", "model", "resolved_model"}
    | {"role", "type", "text", "output", "exception", "tool_call_id", "url", "path"}
)
"""Columns that hold a text or nothing, in any table."""
_COPY: Final = "let this user read the file and write its folder, or import a whole copy of it"
_HINT: Final = "mend the row and import again: what was written before it is not written twice"


def refuse(place: str, what: str) -> NoReturn:
    """Refuse a row that cannot be read."""
    raise InvalidCall(f"{place}: {what}", hint=_HINT)


def check_types(row: R, place: str) -> R:
    """Return a row of a table, with its types checked: SQLite takes any value in any column."""
    for name, value in row.items():
        wanted = str if name in _TEXTS else bytes if name == "content" else None
        if wanted and value not in (None, "") and not isinstance(value, wanted):
            refuse(place, f"{name} is {type(value).__name__}, not {wanted.__name__}")
    return row


class LogFile:
    """The rows of an open file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables = frozenset(row["name"] for row in self._rows("sqlite_schema", _NAMES))
        self._has_threads = self._tables >= _NEW
        if not (self._has_threads or self._tables >= _OLD):
            raise InvalidCall(
                "an SQLite file, but not a logs database of llm", hint="llm logs path names it"
            )
        self._ids: dict[str, dict[Any, list[Any]]] = {}
        """The ids of the rows of a table by their owner, where they were read."""

    def _rows(self, table: str, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Return the rows of a query, each when it is asked for; ``table`` is whose they are."""
        try:
            for row in map(Row, self._connection.execute(sql, tuple(values))):
                yield check_types(row, f"row {row.get('id', row.get('hash'))!r} of {table}")
        except sqlite3.Error as error:
            raise InvalidCall(f"the database cannot be read: {error}", hint=_COPY) from None

    def _one(self, table: str, sql: str, values: Sequence[Any] = ()) -> Row | None:
        return next(self._rows(table, sql, values), None)

    def conversations(self) -> Iterator[Row]:
        """Return each conversation of either layout: its id and its name, the oldest first."""
        names: dict[str, str | None] = {}
        for table, sql in _HEADS.items():
            for row in self._rows("conversations", sql) if table in self._tables else ():
                if not isinstance(row["id"], str):
                    refuse(f"row {row['id']!r} of conversations", "the id is no text")
                names[row["id"]] = row["name"]
        for id, name in sorted(names.items(), key=lambda one: one[0]):
            yield Row(id=id, name=name)

    # From 0.32

    def tip(self, thread: str) -> str | None:
        """Return the last message of a thread."""
        if not self._has_threads:
            return None
        row = self._one("threads", _TIP, (thread,))
        return row["tip"] if row is not None else None

    def chain(self, tip: str) -> list[Row]:
        """Return the messages that lead to one, the oldest first."""
        chain: list[Row] = []
        seen: set[str] = set()
        hash: str | None = tip
        while hash is not None:
            row = self._one("messages", "SELECT * FROM messages WHERE hash = ?", (hash,))
            if row is None or hash in seen:
                raise InvalidCall("the database has a message whose predecessor is not there")
            seen.add(hash)
            chain.append(row)
            hash = row["parent_hash"]
        return chain[::-1]

    def parts(self, message: str) -> Iterator[Row]:
        sql = "SELECT * FROM parts WHERE message_hash = ? ORDER BY position"
        return self._rows("parts", sql, (message,))

    def turns(self, thread: str) -> list[Row]:
        sql = "SELECT * FROM turns WHERE thread_id = ? ORDER BY id"
        return list(self._rows("turns", sql, (thread,)))

    def is_turn(self, id: str) -> bool:
        """Whether a response has been taken over into the newer layout."""
        sql = "SELECT 1 AS there FROM turns WHERE id = ?"
        return self._has_threads and self._one("turns", sql, (id,)) is not None

    def fragment(self, number: Any) -> str:
        sql = "SELECT id, content AS text FROM fragments WHERE id = ?"
        row = self._one("fragments", sql, (number,))
        if row is None:
            raise InvalidCall("the database has a text whose fragment is not there")
        return row["text"] or ""

    def attachment(self, id: Any) -> Row | None:
        return self._one("attachments", "SELECT * FROM attachments WHERE id = ?", (id,))

    # To 0.31

    def owned(self, table: str, owner: Any) -> list[Row]:
        """Return the responses of a conversation, or what belongs to a response."""
        if table not in self._tables:
            return []
        if table not in self._ids:
            self._ids[table] = defaultdict(list)
            for row in self._rows(table, _OWNERS[table]):
                self._ids[table][row["owner"]].append(row["id"])
        ids = self._ids[table].get(owner, ())
        return [row for id in ids for row in self._rows(table, _ROW[table], (id,))]

    def in_order(self, table: str, owner: Any) -> list[Row]:
        """Return the fragments or attachments that a table names for a response or a result."""
        if table not in self._tables:
            return []
        held = "attachments" if table.endswith("attachments") else "fragments"
        return list(self._rows(held, _IN_ORDER[table], (owner,)))


@contextmanager
def open_log_file(path: str | os.PathLike[str]) -> Iterator[LogFile]:
    """Open a file to read it, as it is at this moment; what writes it meanwhile is not seen."""
    files.check_to_read_again(path)
    address = Path(path).absolute().as_uri() + "?mode=ro"
    try:
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise InvalidCall(f"the database cannot be opened: {error}", hint=_COPY) from None
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _text
        try:
            connection.execute("PRAGMA trusted_schema = off")
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        except sqlite3.Error as error:
            raise InvalidCall(f"the database cannot be read: {error}", hint=_COPY) from None
        yield LogFile(connection)
    finally:
        connection.close()


def _text(data: bytes) -> str:
    # A byte that is no UTF-8 is a lone surrogate, and can be told from every character.
    return data.decode("utf-8", "surrogateescape")


def parse_column(text: Any, place: str) -> Any:
    """Return the value of a JSON column, ``None`` where it is empty."""
    if text is None or text == "":
        return None
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        refuse(place, "not JSON")
