"""Text: any text comes back character for character, wherever it was put, and at any length.

No text column of PostgreSQL holds NUL. Half of a character is mended at the door.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    Counts,
    MediaBlock,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from reasoning_store.ledger.view_records import SummaryRow
from tests.properties import examples

from .compacting import compact
from .histories import any_text, new_session, note, said, stored_messages, without_thinking

ROOT = Path(__file__).parents[2]
NAMED = {
    "nothing": "",
    "a NUL": "\0",
    "NULs between": "a\0b\0",
    "everything at once": "\0\ufdd0 \U0001f600\\u0000\"'",
    "what looks like an escape": "\\u0000 \\ud83d \\x00 \\",
    "what looks like JSON": 'null "x" [1] {"text": "\\n"}',
    "quotes": "\"'`''\"\"",
    "spaces around": "  \t text \n ",
    "line ends of every kind": "\r\n \r \n \x0b \x0c \x85 \u2028 \u2029",
    "a byte order mark": "\ufeffx\ufeff",
    "letters that look composed and are not": "\u00e9 e\u0301 \ufb01 \u212b",
    "writing in both directions": "\u202eabc\u202c \u05d0\u05d1",
    "characters that steer a terminal": "\x1b[31m\x07\x7f\x9b",
    "noncharacters": "\uffff \U0010ffff \ufdd0",
    "what SQL might take for its own": "'; DROP TABLE messages; -- %s :name ? $1",
}


def everywhere(text: str) -> list[NewMessage]:
    """Messages that hold a text in every field that there is."""
    more = {text: [text, {text: text}]}
    origin = Origin(provider=text, api=text, model=text, response_id=text)
    thinking = (
        ThinkingBlock(thought=text, source_field=text, provider_metadata=more),
        ThinkingBlock(thought=text, signature=text, encrypted=text),
    )
    reply = assistant(
        *thinking,
        TextBlock(text=text),
        TextBlock(text=text, provider_metadata=more),
        ToolCallBlock(id=text, name=text, parameters=more, arguments=text, provider_metadata=more),
        origin=origin,
        usage=Usage(output=1, raw=more),
        finish_reason=text,
        metadata=more,
    )
    return [
        NewMessage(user(TextBlock(text=text), metadata=more), Counts(visible=1)),
        NewMessage(reply, Counts(visible=1, thinking=(1, 1)), {text: text}),
        NewMessage(tool(ToolResponseBlock(call_id=text, tool_name=text, result=more))),
        NewMessage(tool(ToolResponseBlock(call_id=text, tool_name=text, result=text))),
        NewMessage(
            user(
                MediaBlock(kind="file", mime_type=text, name=text, url=text),
                MediaBlock(kind="image", mime_type=text, ref=text, data=b"\0\xff"),
                RawBlock(data=more),
            )
        ),
    ]


def check_messages(ledger: Ledger, url: str, text: str) -> None:
    session = new_session(ledger)
    given_ = everywhere(text)
    ledger.messages.append(session.key, 1, given_)

    with Ledger.open(url) as elsewhere:
        read = stored_messages(elsewhere, session.key, 1)
        sent = elsewhere.views.last_request(session.key, 1)

        assert [row.message for row in read] == [entry.message for entry in given_]
        assert sent is not None
        assert sent.facts == {text: text}
        light = without_thinking(elsewhere, session.key)
        assert (light[1].headers or ())[0].source_field == text


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_every_field_of_a_message_returns_it(ledger: Ledger, url: str, text: str) -> None:
    """Texts, thoughts, seals, tools' names and ids, arguments, results, media, metadata."""
    check_messages(ledger, url, text)


@examples(60)
@given(text=any_text)
def test_every_field_of_a_message_returns_any_text(ledger: Ledger, url: str, text: str) -> None:
    """Whatever Hypothesis can think of."""
    check_messages(ledger, url, text)


def check_session(ledger: Ledger, url: str, text: str) -> None:
    more = {text: [text, {text: text}]}
    number = new_session(ledger).id
    name = text.replace("\0", "")
    owner = f"{name}/{number}"
    session = ledger.sessions.create(owner, name, encoding=name, title=name, metadata=more)
    ledger.sessions.change_settings(session.key, more)
    ledger.profiles.set(owner, f"p{name}", more)
    ledger.sessions.use_profile(session.key, f"p{name}")
    ledger.budgets.remember(session.key, text)
    first = ledger.messages.append(session.key, 1, [said(text)], idempotency_key=text)
    ledger.messages.append(session.key, 1, [said(text)])
    summary = NewMessage(user(text or "x"), Counts(visible=1))
    compact(ledger, session.key, 1, 1, 1, summary)
    begun = ledger.drafts.begin(session.key, 1, request_facts=more, idempotency_key=f"draft {text}")
    note(ledger, begun, more)

    with Ledger.open(url) as elsewhere:
        found = elsewhere.sessions.get(owner, name)
        assert (found.owner, found.id, found.title, found.encoding) == (owner, name, name, name)
        assert (found.metadata, found.settings) == (more, more)
        assert found.profile == f"p{name}"
        assert ledger.sessions.kept_settings(owner, name).profile == more
        assert [page.id for page in elsewhere.sessions.page(owner).items] == [name]
        assert elsewhere.budgets.get(session.key).crossed == (text,)
        (again,) = elsewhere.history.by_idempotency_key(session.key, text) or []
        assert again.id == first[0].id
        draft = elsewhere.drafts.get(session.key, 1)
        assert draft is not None
        assert (draft.annotations, draft.request_facts) == (more, more)
        (compaction,) = elsewhere.views.compactions(session.key, 1)
        assert isinstance(compaction, SummaryRow)
        assert compaction.message == summary.message


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_every_name_of_a_session_returns_it(ledger: Ledger, url: str, text: str) -> None:
    """Owner, id, title, metadata, settings, profiles, idempotency keys, summaries, drafts."""
    check_session(ledger, url, text)


@examples(40)
@given(text=any_text)
def test_every_name_of_a_session_returns_any_text(ledger: Ledger, url: str, text: str) -> None:
    """Whatever Hypothesis can think of."""
    check_session(ledger, url, text)


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_a_reply_that_streamed_it_is_stored_as_it_came(url: str, text: str) -> None:
    """Through the promised faces: a draft's parts, the counted message, the key."""
    arguments = json.dumps({"x": text}, ensure_ascii=False)
    call = {"index": 0, "id": "c", "function": {"name": f"f{text}", "arguments": arguments}}
    stream: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"reasoning_content": f"thought {text}"}}]},
        {"choices": [{"index": 0, "delta": {"content": f"said {text}", "tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    with rs.Store(url) as store:
        name = text.replace("\0", "")
        session = store.for_owner(name).session(name, create=True, title=name, metadata={text: 1})
        session.append(rs.user(text), idempotency_key=f"asked {text}")
        with session.record(stream, model="m", idempotency_key=f"answer {text}") as reply:
            list(reply)
    with rs.Store(url) as store:
        session = store.for_owner(name).session(name)
        asked, answered = (row.message for row in session.history())

    assert (session.title, session.metadata) == (name, {text: 1})
    assert asked.text == text
    assert answered.text == f"said {text}"
    assert [block.thought for block in answered.thinking] == [f"thought {text}"]
    assert answered.tool_calls[0].name == f"f{text}"
    assert answered.tool_calls[0].parameters == {"x": text}
    assert answered.tool_calls[0].arguments == arguments


def test_texts_that_only_look_alike_are_different_names(ledger: Ledger) -> None:
    """No engine composes, folds or cuts what a session is found by."""
    alike = ["a", "A", "\u00e9", "e\u0301", "\U0001f600", "a ", " a"]

    made = [ledger.sessions.create("u", name, encoding="e").key for name in alike]

    assert len(set(made)) == len(alike)
    assert [ledger.sessions.get("u", name).key for name in alike] == made


MOST = {"sqlite": 6, "postgresql+psycopg": 8}
"""Bytes that a character of a thought may take while it is recorded, at the peak."""


def record_long(url: str, characters: int) -> None:
    """Record a thought in a process of its own, and look at what that took."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger.long_thought", url, str(characters)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["length"] == characters
    assert found["same"]
    assert found["bytes a character"] < MOST[url.partition(":")[0]]


def test_ten_megabytes_of_reasoning_stream_in_and_come_back(url: str) -> None:
    """ERR-003: no length is cut; memory grows with the thought and no faster."""
    record_long(url, 10_000_000)


@pytest.mark.long
def test_a_hundred_megabytes_of_reasoning_stream_in_and_come_back(url: str) -> None:
    """The same at ten times the length."""
    record_long(url, 100_000_000)
