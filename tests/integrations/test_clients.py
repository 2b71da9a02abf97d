"""What is promised of clients: the table of what they send, the facts of a chat, title calls."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reasoning_store as rs
from reasoning_store.integrations import clients, http
from reasoning_store.integrations.clients import (
    Client,
    find_title,
    read_client,
    read_title,
)
from reasoning_store.integrations.echo_matcher import EchoMatcher
from tests.docs.provider import Answer, Asked, Provider, weather

TABLE = Path(clients.__file__).parents[1] / "wire" / "clients.toml"
ID = "01a1f933-8bba-7df3-857f"
CODEX, OPENCODE = {"User-Agent": "codex_cli_rs/0.162.1"}, {"User-Agent": "opencode/1.4 ai-sdk"}
QWEN = {"user-agent": "QwenCode/0.14 (linux; x64)"}
CASES: dict[str, tuple[dict[str, str], dict[str, Any], Client]] = {
    "Codex": ({**CODEX, "Thread-Id": ID, "session-id": ID}, {}, Client("Codex", ID)),
    "Codex, older": ({**CODEX, "session_id": ID}, {}, Client("Codex", ID)),
    "a sub-agent of Codex": (
        {**CODEX, "thread-id": "child", "session-id": ID, "x-codex-parent-thread-id": "p"},
        {},
        Client("Codex", "child", "p"),
    ),
    "opencode": (
        {**OPENCODE, "X-Session-Id": "ses_1", "x-parent-session-id": "ses_0"},
        {},
        Client("opencode", "ses_1", "ses_0"),
    ),
    "opencode at its own provider": (
        {"x-opencode-session": "ses_1", "x-opencode-project": "north"},
        {},
        Client("opencode", "ses_1", None, "north"),
    ),
    "Claude Code": ({"X-Claude-Code-Session-Id": ID}, {}, Client("Claude Code", ID)),
    "a sub-agent of Claude Code": (
        {"x-claude-code-session-id": ID, "x-claude-code-agent-id": "a1"},
        {},
        Client("Claude Code", "a1", ID),
    ),
    "Claude Code by its body": (
        {},
        {"metadata": {"user_id": f"user_8_account__session_{ID}"}},
        Client("Claude Code", ID),
    ),
    "Claude Code by an object": (
        {},
        {"metadata": {"user_id": {"session_id": ID}}},
        Client("Claude Code", ID),
    ),
    "Qwen Code": (QWEN, {"metadata": {"sessionId": ID}}, Client("Qwen Code", ID)),
    "Qwen Code at OpenAI": (QWEN, {"prompt_cache_key": f"q:{ID}"}, Client("Qwen Code", f"q:{ID}")),
    "Cline": ({"X-Task-ID": "1763"}, {}, Client("Cline", "1763")),
    "Open WebUI": ({"X-OpenWebUI-Chat-Id": ID}, {}, Client("Open WebUI", ID)),
    "any vendor": ({"X-Acme-Session-Id": ID}, {}, Client(None, ID)),
    "a short id of a vendor": ({"X-Acme-Session-Id": "1234567"}, {}, Client()),
    "an SDK": ({"User-Agent": "OpenAI/Python 2.1.0"}, {}, Client("OpenAI/Python")),
    "another client's key": ({}, {"prompt_cache_key": "tenant-v1"}, Client()),
    "a user": ({}, {"metadata": {"user_id": "user-7"}}, Client()),
    "another client's header": ({"thread-id": ID}, {}, Client()),
    "a value that is no name": ({"x-task-id": "two words"}, {}, Client()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_client_is_known_by_what_it_sends(name: str) -> None:
    headers, body, expected = CASES[name]

    assert read_client(headers, body) == expected


def test_each_row_has_its_source_and_its_date() -> None:
    """No row without a fact behind it."""
    tables = tomllib.loads(TABLE.read_text("utf-8"))

    rows = [row for table in tables.values() for row in table]
    assert rows
    assert all(row["source"] and isinstance(row["checked"], date) for row in rows)


@pytest.mark.parametrize(
    ("texts", "title"),
    [
        (["How is\n Oslo?"], "How is Oslo?"),
        (["How\0is\ud800Oslo?"], "How is Oslo?"),
        (["<system-reminder>\nToday.\n</system-reminder>\nFix it."], "Fix it."),
        (["<environment_context>a</environment_context>", "Fix it."], "Fix it."),
        (["# AGENTS.md instructions for /x\n<INSTRUCTIONS>..", "Fix it."], "Fix it."),
        (["<system-reminder>\nThis is the Qwen Code. We\n</system-reminder>", "Go."], "Go."),
        (["This is the Qwen Code. We are", "Go."], "Go."),
        (["word " * 40], f"{'word ' * 11}word…"),
        ([""], None),
    ],
)
def test_a_title_is_the_first_words_of_a_person(texts: list[str], title: str | None) -> None:
    assert find_title(map(rs.user, texts)) == title


@pytest.mark.parametrize(
    ("reply", "title"),
    [
        ("Weather in Oslo\n", "Weather in Oslo"),
        ('{"title": "Weather"}', "Weather"),
        ('```json\n{"title": "Weather"}\n```', "Weather"),
        (" ", None),
    ],
)
def test_a_title_is_read_from_a_reply(reply: str, title: str | None) -> None:
    assert read_title(reply) == title


@pytest.fixture
def provider() -> Iterator[Provider]:
    def answer(asked: Asked) -> Answer:
        is_title = "title" in str(asked.body["messages"][0])
        text = "Weather in Oslo" if is_title else "It is 4 C."
        return replace(weather(asked), message=rs.assistant(text))

    with Provider(answer).listening() as listening:
        yield listening


SECRET = "sk-ant-api03-" + "a1B2" * 20
TITLE_CALLS = {
    "opencode": [
        {"role": "system", "content": "You are a title generator. You output ONLY a title."},
        {"role": "user", "content": "Generate a title for this conversation:\n"},
    ],
    "Open WebUI": [{"role": "user", "content": "### Task:\nGenerate a concise title."}],
}


def ask(store: rs.Store, provider: Provider, messages: list[Any], **more: Any) -> Any:
    body = {"model": "deepseek-flash", "messages": messages, **more}
    headers = {**OPENCODE, "x-session-id": "ses_1", "x-opencode-project": "north"}
    with http.client(store, provider="deepseek") as client:
        return client.post(f"{provider.address}/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TITLE_CALLS)
def test_a_title_call_gives_the_title_and_makes_no_session(
    provider: Provider, name: str, stream: bool
) -> None:
    with rs.Store("sqlite://") as store:
        ask(store, provider, [{"role": "user", "content": "How is Oslo?"}])
        (before,) = store.sessions().items
        called: httpx2.Response = ask(store, provider, TITLE_CALLS[name], stream=stream)
        (after,) = store.sessions().items

    assert before.title == "How is Oslo?"
    assert before.metadata == {
        "client": "opencode",
        "group": "ses_1",
        "project": "north",
        "model": "deepseek-flash",
    }
    assert called.headers["X-Reasoning-Stored"] == "no (title)"
    assert after.title == "Weather in Oslo"
    assert after.message_count == 2


@pytest.mark.parametrize("begun", ["before", "meanwhile", "elsewhere"])
def test_a_title_that_comes_before_its_chat_is_stored_reaches_the_chat(begun: str) -> None:
    """Begun before the title call ends, after it, or with another worker: then a request later."""
    headers = {**OPENCODE, "x-session-id": "ses_1"}
    path = "/v1/chat/completions"
    question = {"messages": [{"role": "user", "content": "How is Oslo?"}]}
    with rs.Store("sqlite://", masker=rs.SecretMasker()) as store:
        matcher = EchoMatcher(store)

        def begin(body: Any, worker: EchoMatcher = matcher) -> Any:
            return worker.begin(body, path=path, headers=headers)

        def reply(exchange: Any, text: str) -> None:
            message = {"role": "assistant", "content": text}
            exchange.record(json.dumps({"choices": [{"message": message}]}).encode())

        chat = begin(question, EchoMatcher(store)) if begun == "elsewhere" else None
        chat = begin(question) if begun == "meanwhile" else chat
        reply(begin({"messages": TITLE_CALLS["opencode"]}), f"Oslo {SECRET}")
        assert store.sessions().items == []
        reply(chat or begin(question), "4 C.")
        if begun == "elsewhere":
            again = {"role": "assistant", "content": "4 C."}
            begin({"messages": [*question["messages"], again, *question["messages"]]})
        (session,) = store.sessions().items

    assert session.title
    assert session.title.startswith("Oslo [")
    assert SECRET not in session.title


def test_a_person_who_asks_for_a_title_has_a_chat(provider: Provider) -> None:
    """Only a client's own words make a title call."""
    with rs.Store("sqlite://") as store:
        ask(store, provider, [{"role": "user", "content": "Generate a title for my poem."}])

        assert len(store.sessions().items) == 1


def test_a_title_holds_no_secret(provider: Provider) -> None:
    with rs.Store("sqlite://", masker=rs.SecretMasker()) as store:
        ask(store, provider, [{"role": "user", "content": f"Use {SECRET}"}])
        (session,) = store.sessions().items

    assert SECRET not in str(session.title)
