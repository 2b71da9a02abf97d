"""Logs databases of llm 0.36, in both layouts that a file of that version can hold.

The tables are the package's own after all its migrations (m001 to m027); indexes and the
tables of its full-text search are left out, for no one reads them here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .dirty import CIPHER, SIGNATURE

VERSION = "0.36"

OLD = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE attachments (
    id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB
);
CREATE TABLE schemas (id TEXT PRIMARY KEY, content TEXT);
CREATE TABLE responses (
    id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,
    options_json TEXT, response TEXT, response_json TEXT,
    conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER, datetime_utc TEXT,
    input_tokens INTEGER, output_tokens INTEGER, token_details TEXT,
    schema_id TEXT REFERENCES schemas(id), resolved_model TEXT, reasoning TEXT
);
CREATE TABLE prompt_attachments (
    response_id TEXT REFERENCES responses(id), attachment_id TEXT REFERENCES attachments(id),
    "order" INTEGER, PRIMARY KEY (response_id, attachment_id)
);
CREATE TABLE fragments (
    id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT
);
CREATE TABLE prompt_fragments (
    response_id TEXT REFERENCES responses(id), fragment_id INTEGER REFERENCES fragments(id),
    "order" INTEGER, PRIMARY KEY (response_id, fragment_id, "order")
);
CREATE TABLE system_fragments (
    response_id TEXT REFERENCES responses(id), fragment_id INTEGER REFERENCES fragments(id),
    "order" INTEGER, PRIMARY KEY (response_id, fragment_id, "order")
);
CREATE TABLE tools (
    id INTEGER PRIMARY KEY, hash TEXT, name TEXT, description TEXT, input_schema TEXT, plugin TEXT
);
CREATE TABLE tool_calls (
    id INTEGER PRIMARY KEY, response_id TEXT REFERENCES responses(id),
    tool_id INTEGER REFERENCES tools(id), name TEXT, arguments TEXT, tool_call_id TEXT
);
CREATE TABLE tool_instances (id INTEGER PRIMARY KEY, plugin TEXT, name TEXT, arguments TEXT);
CREATE TABLE tool_results (
    id INTEGER PRIMARY KEY, response_id TEXT REFERENCES responses(id),
    tool_id INTEGER REFERENCES tools(id), name TEXT, output TEXT, tool_call_id TEXT,
    instance_id INTEGER REFERENCES tool_instances(id), exception TEXT
);
CREATE TABLE tool_results_attachments (
    tool_result_id INTEGER REFERENCES tool_results(id),
    attachment_id TEXT REFERENCES attachments(id), "order" INTEGER,
    PRIMARY KEY (tool_result_id, attachment_id)
);
"""

NEW = """
CREATE TABLE messages (
    hash TEXT PRIMARY KEY, parent_hash TEXT REFERENCES messages(hash), role TEXT,
    provider_metadata TEXT
);
CREATE TABLE parts (
    id INTEGER PRIMARY KEY, message_hash TEXT REFERENCES messages(hash), position INTEGER,
    type TEXT, tool_name TEXT, text TEXT, payload TEXT
);
CREATE TABLE part_attachments (
    part_id INTEGER REFERENCES parts(id), attachment_id TEXT REFERENCES attachments(id),
    "order" INTEGER, PRIMARY KEY (part_id, attachment_id, "order")
);
CREATE TABLE part_fragments (
    part_id INTEGER REFERENCES parts(id), fragment_id INTEGER REFERENCES fragments(id),
    "order" INTEGER, PRIMARY KEY (part_id, fragment_id, "order")
);
CREATE TABLE threads (
    id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT REFERENCES messages(hash),
    forked_from TEXT REFERENCES threads(id), datetime_utc TEXT
);
CREATE TABLE turns (
    id TEXT PRIMARY KEY, thread_id TEXT REFERENCES threads(id),
    parent_message_hash TEXT REFERENCES messages(hash),
    tip_message_hash TEXT REFERENCES messages(hash), model TEXT, resolved_model TEXT,
    options_json TEXT, schema_id TEXT REFERENCES schemas(id), input_tokens INTEGER,
    output_tokens INTEGER, token_details TEXT, duration_ms INTEGER, datetime_utc TEXT,
    response_json TEXT
);
"""


class Logs:
    """A logs database under construction."""

    def __init__(self, path: Path, *, threads: bool = True) -> None:
        self.path = path
        is_new = not path.exists()
        self._file = sqlite3.connect(path, isolation_level=None)
        if is_new:
            self._file.executescript(OLD + NEW if threads else OLD)

    def add(self, table: str, **row: Any) -> None:
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        self._file.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608
            list(row.values()),
        )

    def message(self, hash: str, parent: str | None, role: str, *parts: Mapping[str, Any]) -> str:
        """Write a message of parts as llm does: a literal text has a column of its own."""
        self.add("messages", hash=hash, parent_hash=parent, role=role, provider_metadata=None)
        for position, part in enumerate(parts):
            payload = {key: item for key, item in part.items() if key not in ("type", "text")}
            self.add(
                "parts",
                message_hash=hash,
                position=position,
                type=part["type"],
                tool_name=part.get("name"),
                text=part.get("text"),
                payload=json.dumps(payload) if payload else None,
            )
        return hash

    def turn(self, id: str, thread: str, parent: str | None, tip: str, **row: Any) -> None:
        self.add(
            "turns",
            id=id,
            thread_id=thread,
            parent_message_hash=parent,
            tip_message_hash=tip,
            **row,
        )
        self._file.execute("UPDATE threads SET tip_message_hash = ? WHERE id = ?", (tip, thread))

    def close(self) -> Path:
        self._file.close()
        return self.path


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def thought(said: str, **about: Any) -> dict[str, Any]:
    metadata = {"provider_metadata": about} if about else {}
    return {"type": "reasoning", "text": said, **metadata}


def responses(path: Path, rows: Sequence[int] = (1, 2), *, threads: bool = True) -> Path:
    """Write the conversation ``01old``, as versions to 0.31 logged it."""
    logs = Logs(path, threads=threads)
    logs.add("conversations", id="01old", name="Is 91 prime?", model="deepseek-chat")
    logs.add("fragments", id=1, hash="f1", content="From a file.</think>")
    logs.add("attachments", id="a1", type="image/png", content=b"\x89PNG")
    logs.add("prompt_fragments", response_id="r1", fragment_id=1, order=0)
    logs.add("prompt_attachments", response_id="r1", attachment_id="a1", order=0)
    every: dict[int, dict[str, Any]] = {
        1: {
            "prompt": "<think>Is 91 prime?",
            "system": "Be brief.",
            "response": "<think>7 x 13</think>Let me check.",
            "input_tokens": 9,
            "output_tokens": 5,
            "token_details": '{"completion_tokens_details":{"reasoning_tokens":3}}',
        },
        2: {
            "prompt": "",
            "system": "Be brief.",
            "reasoning": "So it is not.",
            "response": "No.</think>",
        },
        3: {
            "prompt": "And 97?",
            "response": "Yes.",
            "response_json": json.dumps(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Prime.", "signature": SIGNATURE},
                        {"type": "text", "text": "Yes."},
                    ],
                }
            ),
        },
    }
    for number in rows:
        logs.add(
            "responses",
            id=f"r{number}",
            conversation_id="01old",
            model="deepseek-chat",
            datetime_utc=f"2025-01-0{number}T00:00:00+00:00",
            **every[number],
        )
    call = {"tool_id": None, "name": "factor", "tool_call_id": None}
    logs.add("tool_calls", response_id="r1", arguments='{"n": 91}', **call)
    logs.add("tool_results", response_id="r2", output="<think>7 13</think>", **call)
    return logs.close()


OLD_COUNTS = {
    "messages": 5,
    "reasoning_in": 2,
    "reasoning_stored": 2,
    "copies": 0,
    "texts_unchanged": 3,
    "texts_cleaned": 2,
    "delimiters": 3,
    "kept_raw": 0,
}
"""Of the first two responses: a system prompt, a prompt, a reply, a result, a reply."""


def thread(path: Path) -> Path:
    """Write the conversation ``02new``, as 0.36 logs it, with each provider's own marks."""
    logs = Logs(path)
    logs.add("threads", id="02new", name="Primes", datetime_utc="2026-03-01T00:00:00+00:00")
    logs.add("fragments", id=1, hash="f1", content="91")
    logs.add("attachments", id="a1", type="audio/mpeg", url="https://example.org/a.mp3")
    logs.message("m1", None, "system", text("Be brief."))
    logs.message(
        "m2",
        "m1",
        "user",
        {
            "type": "text",
            "text_ref": [{"literal": "<think>Is "}, {"fragment": 1}, {"literal": "?"}],
        },
        {"type": "attachment", "attachment": {"id": "a1"}},
    )
    logs.message(
        "m3",
        "m2",
        "assistant",
        thought(
            "Try 7.",
            openai={
                "id": "rs_1",
                "encrypted_content": CIPHER,
                "summary": [{"type": "summary_text", "text": "Try 7."}],
            },
        ),
        {
            "type": "tool_call",
            "name": "factor",
            "arguments": {"n": 91, "a": 1},
            "tool_call_id": "call_1",
        },
    )
    first = {"model": "gpt-5.2", "resolved_model": "gpt-5.2-2026", "input_tokens": 9}
    details = json.dumps({"output_tokens_details": {"reasoning_tokens": 4}})
    logs.turn(
        "t1",
        "02new",
        "m2",
        "m3",
        output_tokens=6,
        token_details=details,
        datetime_utc="2026-03-01T00:00:00+00:00",
        **first,
    )
    answer = {
        "type": "tool_result",
        "name": "factor",
        "output": "7 13</think>",
        "tool_call_id": "call_1",
        "exception": "ValueError: odd",
    }
    logs.message("m4", "m3", "tool", answer)
    logs.message(
        "m5",
        "m4",
        "assistant",
        thought("So not.", anthropic={"signature": SIGNATURE}),
        thought("", anthropic={"type": "redacted_thinking", "data": CIPHER}),
        text("</think>No."),
        {
            "type": "tool_call",
            "name": "web_search",
            "arguments": {},
            "tool_call_id": "srv_1",
            "server_executed": True,
        },
    )
    second = {"model": "claude-opus-5", "datetime_utc": "2026-03-01T00:00:09+00:00"}
    logs.turn("t2", "02new", "m4", "m5", **second)
    logs.message("m6", "m5", "user", text("And 97?"))
    logs.message(
        "m7",
        "m6",
        "assistant",
        thought("97.", gemini={"thoughtSignature": SIGNATURE}),
        text("Yes."),
    )
    logs.turn("t3", "02new", "m6", "m7", model="gemini-3-pro")
    logs.message("m8", "m7", "user", text("Sure?"))
    logs.message(
        "m9",
        "m8",
        "assistant",
        thought("", openai={}),
        thought("Sure."),
        text("<think>x</think>Yes."),
    )
    logs.turn("t4", "02new", "m8", "m9", model="local")
    return logs.close()


NEW_COUNTS = {
    "messages": 9,
    "reasoning_in": 6,
    "reasoning_stored": 6,
    "copies": 0,
    "texts_unchanged": 6,
    "texts_cleaned": 2,
    "delimiters": 3,
    "kept_raw": 1,
}
"""Thoughts: one with ciphertext, a signed and a redacted one, a signed one, a plain and a
tagged one; an empty part that says nothing is none. Texts: eight, two with delimiters."""
