"""llm's logs: each conversation of its database, with the reasoning that it keeps.

A thread (from 0.32) points at its last message, and the messages that lead to it are the
conversation as it was sent; a turn names the model call that ended with a message, its time and
cost. Before 0.32 a response row has its prompt and its answer. A conversation with both is read
from its thread, which repeats the earlier responses. Columns and tables came one by one over the
versions: what a file is missing is ``None``, or empty.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from reasoning_store import Block, InvalidCall, MediaBlock, Message, TextBlock, Usage
from reasoning_store.formats import (
    Conversation,
    open_to_read,
    read_medium,
    read_usage,
    tool_response,
)
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.documents import MEND, Source
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import AnsweredBy, Part, metadata_of
from reasoning_store.importers.source_messages import SourceMessage, object_field, parse_time

_OLD: Final = frozenset({"conversations", "responses"})
_NEW: Final = frozenset({"threads", "turns", "messages", "parts"})
_OWNERS: Final[Mapping[str, str]] = {
    "responses": "coalesce(conversation_id, id)",
    "tool_calls": "response_id",
    "tool_results": "response_id",
}
"""The owner of a row. llm has no index for these: they are read once, or each conversation would
cost a scan of all."""
_REPLY: Final = frozenset({"text", "reasoning", "tool_call"})
_SAID: Final = ("type", "text", "name", "arguments", "output")
_ANY_TYPE: Final = "application/octet-stream"


class Row(dict[str, Any]):
    """A row by its columns; a column that this version of the file lacks is ``None``."""

    def __missing__(self, name: str) -> None:
        return None


class _Log:
    """The rows of an open file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables: frozenset[str] = frozenset({"sqlite_schema"})
        self._tables = frozenset(row["name"] for row in self.rows("sqlite_schema"))
        if not (self._tables >= _NEW or self._tables >= _OLD):
            raise InvalidCall(
                "an SQLite file, but not a logs database of llm", hint="llm logs path names it"
            )
        self._ids: dict[str, dict[Any, list[Any]]] = {}
        """The ids of the rows of a table by their owner, where they were read."""

    def rows(
        self, table: str, rest: str = "", *values: Any, columns: str = "t.*", needs: str = ""
    ) -> list[Row]:
        """Return rows of a table; none where this version of the file lacks it."""
        if table not in self._tables or (needs or table) not in self._tables:
            return []
        try:
            sql = f"SELECT {columns} FROM {table} AS t {rest}"  # noqa: S608  all of it is ours
            found = self._connection.execute(sql, values)
            return [Row(row) for row in found]
        except sqlite3.Error as error:
            raise InvalidCall(
                f"the database cannot be read: {error}",
                hint="let this user read the file and write its folder, or import a whole copy",
            ) from None

    def conversations(self) -> list[tuple[str, str | None]]:
        """Return the id and the name of each conversation of either layout, the oldest first."""
        owner = f"DISTINCT {_OWNERS['responses']} AS id"
        ids: dict[Any, str | None] = {}
        ids |= {row["id"]: None for row in self.rows("responses", columns=owner)}
        for table in ("conversations", "threads"):
            ids |= {row["id"]: row["name"] for row in self.rows(table, columns="id, name")}
        if strange := [id for id in ids if not isinstance(id, str)]:
            raise InvalidCall(f"row {strange[0]!r} of conversations: the id is no text", hint=MEND)
        return sorted(ids.items())

    def owned(self, table: str, owner: Any) -> list[Row]:
        """Return the responses of a conversation, or what belongs to a response."""
        if table not in self._ids:
            ids: defaultdict[Any, list[Any]] = defaultdict(list)
            for row in self.rows(table, "ORDER BY id", columns=f"{_OWNERS[table]} AS owner, id"):
                ids[row["owner"]].append(row["id"])
            self._ids[table] = ids
        found = self._ids[table].get(owner, ())
        return [row for id in found for row in self.rows(table, "WHERE id = ?", id)]

    def linked(self, table: str, link: str, owner: Any) -> list[Row]:
        """Return the fragments or attachments that a table names for a row, in their order."""
        held, by = table.removesuffix("s"), "tool_result" if "results" in link else "response"
        on = f"JOIN {link} AS l ON t.id = l.{held}_id WHERE l.{by}_id = ?"
        return self.rows(table, f'{on} ORDER BY l."order"', owner, needs=link)

    def chain(self, tip: str | None) -> list[Row]:
        """Return the messages that lead to one, the oldest first."""
        chain: dict[str, Row] = {}
        while tip is not None:
            found = self.rows("messages", "WHERE hash = ?", tip)
            if not found or tip in chain:
                raise InvalidCall("the database has a message whose predecessor is not there")
            (chain[tip],) = found
            tip = found[0]["parent_hash"]
        return [*chain.values()][::-1]


@contextmanager
def _open_log(path: str | os.PathLike[str]) -> Iterator[_Log]:
    """Open a file to read it, as it is at this moment; what writes it meanwhile is not seen."""
    with open_to_read(path, again=True):
        pass  # its errors say what is wrong with a path
    address = Path(path).absolute().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        # A byte that is no UTF-8 is a lone surrogate, and differs from every character.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            connection.execute("PRAGMA trusted_schema = off")
            connection.execute("BEGIN")
        except sqlite3.Error as error:
            raise InvalidCall(f"the database cannot be opened: {error}") from None
        yield _Log(connection)


def check(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is no logs database."""
    with _open_log(path):
        pass


def read(source: Source, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    """Return the conversations of a logs database, the oldest first; each has an id there."""
    if not isinstance(source, str | os.PathLike):
        raise InvalidCall("a logs database is read from its file", hint="give its path")
    with _open_log(source) as log:
        for id, title in log.conversations():
            threads = log.rows("threads", "WHERE id = ?", id)
            try:
                if threads and threads[0]["tip_message_hash"] is not None:
                    yield _read_thread(log, id, title, threads[0]["tip_message_hash"], who)
                else:
                    yield _read_responses(log, id, title, who)
            except InvalidCall:
                raise
            except (TypeError, KeyError, AttributeError, ValueError):
                where = f"conversation {id}: a row has a value of another type, or no JSON"
                raise InvalidCall(where, hint=MEND) from None


def _start(
    id: str, title: str | None, calls: Sequence[Row], who: AnsweredBy
) -> ConversationBuilder:
    began = parse_time(calls[0]["datetime_utc"]) if calls else None
    return ConversationBuilder(id, who, title=title, created_at=began)


def _parse(text: Any) -> Any:
    """Return the value of a JSON column, ``None`` where it is empty."""
    return json.loads(text) if text else None


# From 0.32


def _read_thread(log: _Log, id: str, title: str | None, tip: str, who: AnsweredBy) -> Conversation:
    turns = log.rows("turns", "WHERE thread_id = ? ORDER BY id", id)
    into = _start(id, title, turns, who)
    ended_by = {turn["tip_message_hash"]: turn for turn in turns}
    chain = log.chain(tip)
    calls: list[Row] = []
    for message in reversed(chain):
        calls.append(ended_by.get(message["hash"], calls[-1] if calls else Row()))
    for message, call in zip(chain, reversed(calls), strict=True):
        found = log.rows("parts", "WHERE message_hash = ? ORDER BY position", message["hash"])
        parts = [_resolve_part(log, part) for part in found]
        is_last = call["tip_message_hash"] == message["hash"]
        place = f"message {into.next} of {into.id}"
        about = _parse(message["provider_metadata"])
        _add_message(message["role"], parts, place, call, into, counted=is_last, about=about)
    return into.conversation()


def _resolve_part(log: _Log, row: Row) -> Part:
    """Return a part as llm's JSON has it, with what is kept elsewhere put in."""
    part: Part = {**(_parse(row["payload"]) or {}), "type": row["type"]}
    if row["text"] is not None:
        part["text"] = row["text"]
    if pieces := part.pop("text_ref", None):
        part["text"] = "".join(
            piece["literal"] if "literal" in piece else _fragment(log, piece["fragment"])
            for piece in pieces
        )
    lone = part.pop("attachment", None)
    held = [*(part.pop("attachments", None) or ()), *([] if lone is None else [lone])]
    found = [log.rows("attachments", "WHERE id = ?", about["id"]) or [about] for about in held]
    return {**part, "attachments": [rows[0] for rows in found]}


def _fragment(log: _Log, number: Any) -> str:
    found = log.rows("fragments", "WHERE id = ?", number)
    if not found:
        raise InvalidCall("the database has a text whose fragment is not there")
    return found[0]["content"] or ""


# To 0.31


def _read_responses(log: _Log, id: str, title: str | None, who: AnsweredBy) -> Conversation:
    """Return the conversation that responses make, one after the other."""
    rows = log.owned("responses", id)
    into = _start(id, title, rows, who)
    system = ""
    for row in rows:
        place, key = f"response {row['id']}", row["id"]
        fragments = {
            of: [one["content"] for one in log.linked("fragments", f"{of}_fragments", key)]
            for of in ("system", "prompt")
        }
        prompt = "\n\n".join(
            text.strip() for text in [*fragments["system"], row["system"]] if (text or "").strip()
        )
        if prompt and prompt != system:
            system = prompt
            _add_message("system", [{"type": "text", "text": prompt}], place, row, into)
        results: list[Part] = [
            {**one, "type": "tool_result", "attachments": media}
            for one in log.owned("tool_results", key)
            for media in [log.linked("attachments", "tool_results_attachments", one["id"])]
        ]
        if results:
            _add_message("tool", results, place, row, into)
        asked = "\n".join(text for text in [*fragments["prompt"], row["prompt"]] if text)
        media = log.linked("attachments", "prompt_attachments", key)
        parts: list[Part] = [{"type": "text", "text": asked}] if asked else []
        if media:
            parts.append({"type": "attachment", "attachments": media})
        if parts:
            _add_message("user", parts, place, row, into)
        # EC-006: the order in which the model must have sent them
        reply: list[Part] = [
            {"type": kind, "text": row[column]}
            for kind, column in (("reasoning", "reasoning"), ("text", "response"))
            if row[column]
        ]
        reply += [
            {**call, "type": "tool_call", "arguments": _parse(call["arguments"])}
            for call in log.owned("tool_calls", key)
        ]
        _add_message("assistant", reply, place, row, into)
    return into.conversation()


# Messages


def _add_message(
    role: Any,
    parts: Sequence[Part],
    place: str,
    call: Row,
    into: ConversationBuilder,
    *,
    counted: bool = True,
    about: Any = None,
) -> None:
    """Add a message of the call of a model; with ``counted`` it has the call's usage."""
    at = parse_time(call["datetime_utc"])
    placed = SourceMessage(
        place=place, line=0, value={} if at is None else {"created_at": at.isoformat()}
    )
    rows = [row for part in parts for row in part.get("attachments") or ()]
    media = [medium for row in rows if (medium := _read_medium(row))]
    # A conversation that llm moved to the newer layout has the keys that it had.
    said = [[part.get(name) for name in _SAID] for part in parts if _is_said(part)]
    source, unread = [role, *said], {"provider_metadata": about} if about else {}
    if role == "assistant":
        reply = KeptReply(
            parts=[part for part in parts if _is_said(part)],
            media=media,
            others=[_without_media(part) for part in parts if _is_other(part)],
            model=call["resolved_model"] or call["model"],
            usage=_read_usage(call) if counted else None,
        )
        into.add_kept_reply(reply, placed, source=source, unread=unread)
        return
    if role not in ("user", "tool", "system"):
        into.skip(placed.place, UNKNOWN_ROLE)
        return
    blocks: list[Block] = []
    for part in parts:
        if part["type"] == "tool_result":
            id, name, output = (part.get(key) for key in ("tool_call_id", "name", "output"))
            is_error = bool(part.get("exception"))
            blocks.append(tool_response(id, output, name=name, is_error=is_error))
        elif part.get("text"):
            blocks.append(TextBlock(text=part["text"]))
    into.add(Message(role=role, blocks=(*blocks, *media)), placed, source=source, unread=unread)


def _is_said(part: Part) -> bool:
    return part["type"] in (*_REPLY, "tool_result") and not _is_other(part)


def _is_other(part: Part) -> bool:
    """Whether a part is the work of a hosted tool, that no provider takes back."""
    if part["type"] in (*_REPLY, "tool_result", "attachment"):
        hosted = part.get("server_executed")
        return bool(hosted) and not metadata_of(part, "openrouter").get("response_item")
    return True


def _without_media(part: Part) -> Part:
    return {name: value for name, value in part.items() if name != "attachments"}


def _read_medium(row: Mapping[str, Any]) -> MediaBlock | None:
    """Return an attachment: its bytes, its address, or the path that llm remembers."""
    data, url = row.get("content"), row.get("url")
    ref = row.get("path") or row.get("id")
    return read_medium(row.get("type") or _ANY_TYPE, data=data, url=url, ref=ref)


def _read_usage(call: Row) -> Usage | None:
    """Return what a model call reported, as llm kept it."""
    details = object_field({"details": _parse(call["token_details"])}, "details")
    counts = {name: call[f"{name}_tokens"] for name in ("input", "output")}
    return read_usage(
        {**counts, **({"details": details} if details else {})},
        {
            "input": ("input",),
            "output": ("output",),
            "reasoning": (
                "details.output_tokens_details.reasoning_tokens",
                "details.completion_tokens_details.reasoning_tokens",
                "details.reasoning_tokens",
                "details.thoughtsTokenCount",
            ),
            "cached": (
                "details.input_tokens_details.cached_tokens",
                "details.prompt_tokens_details.cached_tokens",
                "details.cache_read_input_tokens",
                "details.cachedContentTokenCount",
            ),
            "cache_write": ("details.cache_creation_input_tokens",),
        },
        # Anthropic's words: it counts as input only those outside of its cache.
        cache_apart="cache_read_input_tokens" in details,
        reasoning_apart="thoughtsTokenCount" in details,
    )
