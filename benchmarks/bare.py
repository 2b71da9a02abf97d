"""The floor: the bare driver on our own tables, doing what has to be done and no more.

It writes the rows that ours writes and reads the rows that ours reads, decodes the JSON
that stands in them, and groups them into plain tuples: no digest, no check, no value of
ours, no SQLAlchemy. A test holds that both read and write as many rows, with the same texts.

The statements are written once; a driver's own mark of a parameter is put in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.conversation import MAKER, SESSION, USAGE, Turn
from reasoning_store.ledger.keys import origin_number, session_key
from reasoning_store.tokens import DEFAULT_ENCODING, vocabularies

KEY = session_key("", SESSION)
Execute = Callable[[str, Sequence[Any]], Iterable[Any]]

_RANGE = "WHERE session_key = ? AND branch = 1 AND position BETWEEN ? AND ? ORDER BY position"
_HEADS = (
    "SELECT position, id, role, status, created_at, origin, visible, exactness, shape, digest,"
    f" annotations FROM messages {_RANGE}"
)
_BODIES = f"SELECT position, text, data FROM bodies {_RANGE}"
_THINKING = (
    "SELECT position, ordinal, tokens, source_field, thought, data, is_hidden"
    f" FROM thinking_blocks {_RANGE}, ordinal"
)
_NARROW = f"SELECT position, role, origin, visible, exactness, flags, shape FROM messages {_RANGE}"
_ROLES = f"SELECT position, role FROM messages {_RANGE}"
_THOUGHTS = f"SELECT position, source_field, thought FROM thinking_blocks {_RANGE}, ordinal"
_SIGNED = f"SELECT position, thought, data FROM thinking_blocks {_RANGE}, ordinal"

Row = tuple[Any, str | None, Any, Sequence[Any]]
"""The columns of a message, its text, its decoded JSON, the rows of its thinking."""


def library() -> ModuleType:
    """Return the library that ours uses, without what ours imports next to it."""
    return import_module("pysqlite3.dbapi2" if find_spec("pysqlite3") else "sqlite3.dbapi2")


def connect(path: Path) -> Any:
    """Open a file as durably as ours is, with its library and as large a cache."""
    connection = library().connect(str(path), isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=FULL").fetchall()
    connection.execute("PRAGMA cache_size=-8192").fetchall()
    return connection


def encode() -> Callable[[str], Sequence[int]]:
    """Return tiktoken's own function, with the vocabulary loaded."""
    encoding = vocabularies.load(vocabularies.VOCABULARIES[DEFAULT_ENCODING])
    made: Callable[[str], Sequence[int]] = encoding.encode_ordinary
    made("loaded")
    return made


def tokens(encoder: Callable[[str], Sequence[int]], turn: Turn) -> tuple[int, int, int]:
    return len(encoder(turn.asked)), len(encoder(turn.thought)), len(encoder(turn.answered))


# Reading


def load(
    execute: Execute, first: int, last: int, *, thinking: bool = True, mark: str = "?"
) -> list[Row]:
    """Return the messages of a range as plain tuples, one read a table."""
    span = (KEY, first, last)
    heads = list(execute(_HEADS.replace("?", mark), span))
    bodies, decoded = _decoded(execute(_BODIES.replace("?", mark), span))
    thoughts: dict[int, list[Any]] = {}
    if thinking:
        for thought in list(execute(_THINKING.replace("?", mark), span)):
            thoughts.setdefault(thought[0], []).append(thought)
    return [
        (head, text, None if data is None else next(decoded), thoughts.get(position, ()))
        for head, (position, text, data) in zip(heads, bodies, strict=True)
    ]


@dataclass(slots=True)
class _Text:
    text: str | None
    provider_metadata: None = None


@dataclass(slots=True)
class _Thought:
    thought: str
    source_field: str
    data: str | None
    provider_metadata: None = None


@dataclass(slots=True)
class _Message:
    role: str
    blocks: tuple[_Text | _Thought, ...]
    status: str
    origin: int | None
    usage: Any
    finish_reason: str | None
    metadata: Any


@dataclass(slots=True)
class _Counts:
    visible: int
    thinking: tuple[int, ...]
    exactness: int


@dataclass(slots=True)
class _Stored:
    id: str
    position: int
    message: _Message
    counts: _Counts
    created_at: int
    digest: bytes


def load_objects(
    execute: Execute, first: int, last: int, *, thinking: bool = True
) -> list[_Stored]:
    """Return the messages of a range as a library gives them: objects, of plain classes."""
    out: list[_Stored] = []
    for head, text, value, thoughts in load(execute, first, last, thinking=thinking):
        position, id, role, status, at, origin, visible, exactness, _, digest, _ = head
        blocks: list[_Text | _Thought] = [_Thought(row[4], row[3], row[5]) for row in thoughts]
        about = value or {}
        message = _Message(
            role,
            (*blocks, _Text(text)),
            status,
            origin,
            about.get("usage"),
            about.get("finishReason"),
            about.get("metadata"),
        )
        counts = _Counts(visible, tuple([row[2] for row in thoughts]), exactness)
        out.append(_Stored(id, position, message, counts, at, digest))
    return out


def _decoded(bodies: Iterable[Any]) -> tuple[list[Any], Iterator[Any]]:
    """Return the rows of bodies, and the values of their JSON, decoded all at once."""
    rows = list(bodies)
    return rows, iter(json.loads(f"[{','.join([row[2] for row in rows if row[2]])}]"))


def rendered(
    execute: Execute, first: int, last: int, *, thinking: bool = True
) -> list[dict[str, Any]]:
    """Return the messages of a range as a Chat Completions request has them."""
    span = (KEY, first, last)
    roles = list(execute(_ROLES, span))
    bodies, decoded = _decoded(execute(_BODIES, span))
    messages: list[dict[str, Any]] = [
        {"role": role, "content": text}
        for (_, role), (_, text, _) in zip(roles, bodies, strict=True)
    ]
    if any("blocks" in value for value in decoded):
        raise ValueError("the floor renders one text a message")
    if thinking:
        for position, field, thought in list(execute(_THOUGHTS, span)):
            messages[position - first][field] = thought
    return messages


def rendered_signed(execute: Execute, first: int, last: int) -> list[dict[str, Any]]:
    """Return the messages of a range as a Messages request has them, thoughts and signatures."""
    messages = rendered(execute, first, last, thinking=False)
    thoughts = list(execute(_SIGNED, (KEY, first, last)))
    seals = json.loads(f"[{','.join([data for _, _, data in thoughts])}]")
    for (position, thought, _), seal in zip(thoughts, seals, strict=True):
        said = messages[position - first]
        said["content"] = [
            {"type": "thinking", "thinking": thought, "signature": seal["signature"]},
            {"type": "text", "text": said["content"]},
        ]
    return messages


def narrow(execute: Execute, first: int, last: int) -> tuple[int, int]:
    """Return what the messages of a range count, and their thinking: without any text."""
    rows = list(execute(_NARROW, (KEY, first, last)))
    shapes = json.loads(f"[{','.join([row[-1] for row in rows if row[-1]])}]")
    return sum([row[3] for row in rows]), sum([own[1] for each in shapes for own in each])


def head(execute: Execute) -> int:
    """Return the position of the last message."""
    ((next_position,),) = execute(
        "SELECT next_position FROM branches WHERE session_key = ? AND branch = 1", (KEY,)
    )
    return int(next_position) - 1


# Writing

_TAKE = """UPDATE branches SET next_position = next_position + 2
    WHERE session_key = ? AND branch = 1 RETURNING next_position - 2"""
_QUESTION_COLUMNS = """session_key, branch, position, id, role, status, created_at, visible,
    thinking, exactness, flags, clearable, digest"""
_MESSAGE_COLUMNS = f"{_QUESTION_COLUMNS}, shape, input, output, reasoning, origin"
_INSERT_REPLY = f"INSERT INTO messages ({_MESSAGE_COLUMNS}) VALUES ({', '.join('?' * 18)})"
# A column that stays NULL is not named: the driver takes longer over None than over a text.
_INSERT_QUESTION = f"INSERT INTO messages ({_QUESTION_COLUMNS}) VALUES ({', '.join('?' * 13)})"
_INSERT_ASKED = "INSERT INTO bodies (session_key, branch, position, text) VALUES (?,?,?,?)"
_INSERT_ANSWER = "INSERT INTO bodies (session_key, branch, position, text, data) VALUES (?,?,?,?,?)"
_INSERT_THINKING = """INSERT INTO thinking_blocks
    (session_key, branch, position, ordinal, tokens, source_field, thought)
    VALUES (?, 1, ?, 0, ?, 'reasoning_content', ?)"""
_SAID = "UPDATE sessions SET updated_at = ?, sum_reasoning = sum_reasoning + ? WHERE session_key=?"
_REPLY = json.dumps(
    {"usage": [*USAGE.values(), None, None], "finishReason": "stop"}, separators=(",", ":")
)
_DIGEST = bytes(16)
_STARTS_TURN = 2
_MAKER = json.dumps(MAKER, separators=(",", ":"))
_ORIGIN = origin_number(_MAKER)
"""The number under which a session has the maker of its replies."""


def write_maker(execute: Any) -> None:
    """Write who makes the replies of a new session: once, as ours does."""
    execute(
        "INSERT INTO origins (session_key, number, origin) VALUES (?, ?, ?)", (KEY, _ORIGIN, _MAKER)
    )


def append(execute: Any, turn: Turn, counts: tuple[int, int, int], now: int) -> None:
    """Write one turn within the caller's transaction."""
    asked, thought, answered = counts
    ((first,),) = execute(_TAKE, (KEY,)).fetchall()
    shape = f'[[0,{thought},32,"reasoning_content"]]'
    used = (shape, USAGE["input"], USAGE["output"], USAGE["reasoning"], _ORIGIN)
    place = (KEY, 1, first, f"{now}-{first}", "user", "complete", now)
    execute(_INSERT_QUESTION, (*place, asked + 4, 0, 0, _STARTS_TURN, 0, _DIGEST))
    place = (KEY, 1, first + 1, f"{now}-{first + 1}", "assistant", "complete", now)
    execute(_INSERT_REPLY, (*place, answered + 4, thought, 0, 0, 0, _DIGEST, *used))
    execute(_INSERT_ASKED, (KEY, 1, first, turn.asked))
    execute(_INSERT_ANSWER, (KEY, 1, first + 1, turn.answered, _REPLY))
    execute(_INSERT_THINKING, (KEY, first + 1, thought, turn.thought))
    execute(_SAID, (now, USAGE["reasoning"], KEY))


def write(connection: Any, turn: Turn, counts: tuple[int, int, int], now: int) -> None:
    """Write one turn, durably."""
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    append(execute, turn, counts, now)
    execute("COMMIT")


POSTGRES_TURN = f"""WITH old AS (
    UPDATE branches SET next_position = next_position + 2
    WHERE session_key = %(key)s AND branch = 1
    RETURNING next_position - 2 AS first
), made AS (
    INSERT INTO messages ({_MESSAGE_COLUMNS})
    SELECT %(key)s, 1, first, %(id)s::text || first, 'user', 'complete', %(now)s, %(asked)s, 0,
        0, {_STARTS_TURN}, 0, %(digest)s, NULL, NULL::bigint, NULL::bigint, NULL::bigint,
        NULL::bigint
        FROM old
    UNION ALL
    SELECT %(key)s, 1, first + 1, %(id)s::text || (first + 1), 'assistant', 'complete', %(now)s,
        %(answered)s, %(thought)s, 0, 0, 0, %(digest)s, %(shape)s, %(input)s, %(output)s,
        %(reasoning)s, %(origin)s
        FROM old
), in_bodies AS (
    INSERT INTO bodies (session_key, branch, position, text, data)
    SELECT %(key)s, 1, first, %(question)s::text, NULL::text FROM old
    UNION ALL SELECT %(key)s, 1, first + 1, %(answer)s, %(reply)s FROM old
), in_thinking AS (
    INSERT INTO thinking_blocks
        (session_key, branch, position, ordinal, tokens, source_field, thought)
    SELECT %(key)s, 1, first + 1, 0, %(thought)s, 'reasoning_content', %(reasons)s FROM old
), said AS (
    UPDATE sessions SET updated_at = %(now)s, sum_reasoning = sum_reasoning + %(reasoning)s
    WHERE session_key = %(key)s
) SELECT first FROM old"""
"""A turn in one statement, which psycopg prepares on the server by itself."""


def postgres_turn(turn: Turn, counts: tuple[int, int, int], now: int) -> dict[str, Any]:
    """Return the parameters of that statement."""
    asked, thought, answered = counts
    return {
        "key": KEY,
        "asked": asked + 4,
        "answered": answered + 4,
        "thought": thought,
        "id": f"{now}-",
        "now": now,
        "digest": _DIGEST,
        "origin": _ORIGIN,
        "shape": f'[[0,{thought},32,"reasoning_content"]]',
        "question": turn.asked,
        "reasons": turn.thought,
        "answer": turn.answered,
        "reply": _REPLY,
        **USAGE,
    }
