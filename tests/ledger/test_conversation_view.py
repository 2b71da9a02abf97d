"""The view ``conversation``: a database that people can read, on both engines."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from reasoning_store.conversation.blocks import (
    Counts,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    assistant,
    user,
)
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage

COLUMNS = "owner session title position role time model thinking is_hidden text".split()


def rows_of(url: str, where: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def look(connection: Connection) -> None:
        text = f"SELECT * FROM conversation {where} ORDER BY owner, session, position"  # noqa: S608
        found.extend(dict(row) for row in connection.exec_driver_sql(text).mappings())

    opening.run_schema_command(url, look)
    return found


def entry(message: Message, *thinking: int) -> NewMessage:
    return NewMessage(message, Counts(visible=1, thinking=thinking))


def test_the_view_shows_a_conversation_as_it_was_written(url: str) -> None:
    """The session is found by its plain id; thoughts are joined, and texts, whatever is in them."""
    with Ledger.open(url) as ledger:
        key = ledger.sessions.create("user-7", "chat-42", encoding="o200k_base", title="Primes").key
        reply = assistant(
            ThinkingBlock(thought="7 * 13"),
            TextBlock(text="No\0, ", provider_metadata={"id": "x"}),
            ThinkingBlock(thought="is\0 91", is_hidden=True),
            ToolCallBlock(id="c", name="f", parameters={}),
            TextBlock(text="it is not."),
            origin=Origin(provider="deepseek", model="m-1"),
        )
        ledger.messages.append(
            key,
            1,
            [entry(user("Is 91 prime?")), entry(reply, 1, 1)],
            created_at=1_767_312_000_000_000,
        )

    asked, answered = rows_of(url, "WHERE session = 'chat-42'")

    assert list(asked) == COLUMNS
    assert asked == {
        "owner": "user-7",
        "session": "chat-42",
        "title": "Primes",
        "position": 1,
        "role": "user",
        "time": "2026-01-02T00:00:00Z",
        "model": None,
        "thinking": None,
        "is_hidden": None,
        "text": "Is 91 prime?",
    }
    nul = "\0" if url.startswith("sqlite") else "\ufffd"
    assert answered["model"] == "m-1"
    assert answered["thinking"] == f"7 * 13\n\nis{nul} 91"
    assert answered["is_hidden"] == 1
    assert answered["text"] == f"No{nul}, it is not."


def test_the_view_shows_the_current_branch(url: str) -> None:
    """What a fork shares, and what it has of its own; nothing that an edit replaced."""
    with Ledger.open(url) as ledger:
        key = ledger.sessions.create("", "chat", encoding="o200k_base").key
        said = [entry(user(text)) for text in ("one", "two", "three")]
        ledger.messages.append(key, 1, said)
        first = ledger.branches.fork(key, 1, 3)
        ledger.messages.append(key, first, [entry(user("third")), entry(user("fourth"))])
        second = ledger.branches.fork(key, first, 4)
        ledger.messages.append(key, second, [entry(user("last"))])

        def shown() -> list[str]:
            return [row["text"] for row in rows_of(url)]

        assert shown() == ["one", "two", "three"]
        ledger.branches.activate(key, first)
        assert shown() == ["one", "two", "third", "fourth"]
        ledger.branches.activate(key, second)
        assert shown() == ["one", "two", "third", "last"]


def test_an_erased_text_is_not_in_the_view(url: str) -> None:
    """Its row is, with its role."""
    with Ledger.open(url) as ledger:
        key = ledger.sessions.create("", "chat", encoding="o200k_base").key
        ledger.messages.append(key, 1, [entry(user("secret")), entry(user("kept"))])
        ledger.erasure.erase_message(key, 1, 1)

    assert [(row["role"], row["text"]) for row in rows_of(url)] == [
        ("user", None),
        ("user", "kept"),
    ]
