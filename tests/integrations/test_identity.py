"""No thought crosses into another conversation, none outlives an edit, and nothing sent is lost."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.integrations.echo_matcher import EchoMatcher
from reasoning_store.integrations.exchange import Exchange
from reasoning_store.testing import sse, stream
from tests.integrations.populations import (
    HOSTS,
    KINDS,
    STEPS,
    Ask,
    Chat,
    answer,
    before,
    body_of,
    make_chat,
    plain,
    response_of,
)
from tests.properties import examples

THOUGHT = re.compile(r"thought C(\d+)R(\d+);")
ALL = {"reasoning.includeInContext": True}


class World:
    """Clients that share one store, their requests in any order."""

    def __init__(self, store: rs.Store, chats: Sequence[Chat], rng: random.Random) -> None:
        self.store = store
        self.rng = rng
        self.restored = 0
        self.sessions: dict[int, set[str]] = {chat.number: set() for chat in chats}
        self._courses = [(chat, KINDS[chat.kind](chat), self._calls(chat)) for chat in chats]

    @staticmethod
    def _calls(chat: Chat) -> Iterator[int]:
        name = next((name for name in STEPS if chat.kind.startswith(name)), "")
        steps = STEPS.get(name, (0,))
        return cycle(steps)

    def run(self) -> None:
        waiting = [(chat, course, calls, next(course)) for chat, course, calls in self._courses]
        while waiting:
            at = self.rng.randrange(len(waiting))
            chat, course, calls, ask = waiting[at]
            reply = self.exchange(chat, ask, calls)
            try:
                waiting[at] = chat, course, calls, course.send(reply)
            except StopIteration:
                del waiting[at]

    def exchange(self, chat: Chat, ask: Ask, calls: Iterator[int]) -> rs.Message:
        provider, _, path = HOSTS[chat.api]
        matcher = EchoMatcher(self.store, settings=ALL, provider=provider)
        body = body_of(ask, chat.api)
        headers = {} if ask.group is None else {"x-any-session-id": ask.group}
        found = matcher.begin(body, path=path, session_id=ask.session_id, headers=headers)
        assert found is not None
        assert found.error is None
        self._check_thoughts(chat, ask, found)
        if ask.fails:
            return rs.assistant("refused")
        reply = answer(chat, calls)
        if ask.cut is None:
            body = response_of(reply, chat.api, f"{chat.number}_{chat.replies}")
            found.record(json.dumps(body).encode())
        else:
            part = rs.assistant(*reply.thinking, reply.text[: ask.cut])
            found.begin_stream()
            for event in stream(part, api=chat.api, provider=provider):
                if found.reply is None or not found.reply.text:
                    found.feed(sse([event], api=chat.api).replace(b"data: [DONE]\n\n", b""))
            found.leave()
        assert found.error is None
        self._check_stored(chat, ask, found)
        return reply

    def _check_thoughts(self, chat: Chat, ask: Ask, found: Exchange) -> None:
        """Each thought is the conversation's own, at its reply, with all before it as it was."""
        own = {one.thought.strip(): index for index, one in enumerate(ask.messages) if one.thought}
        sent = [match.group() for match in THOUGHT.finditer(json.dumps(found.body))]
        crossed = [one for one in sent if one not in own]
        assert not crossed, f"{chat.kind}: {crossed}"
        places = [own[one] for one in sent]
        assert places == sorted(set(places)), f"{chat.kind}: out of order"
        turn = max(n for n, one in enumerate(ask.messages) if one.message.role == "user")
        for place in places:
            if place < turn:
                now = before(ask.system, ask.messages[:place])
                assert now == ask.messages[place].before, f"{chat.kind}: stale"
        self.restored += len(sent)

    def _check_stored(self, chat: Chat, ask: Ask, found: Exchange) -> None:
        """What the client sent stands on the branch of the reply, in its order."""
        assert found.session is not None
        self.sessions[chat.number].add(found.session.id)
        history = iter([told(one.message) for one in found.session.history()])
        known = {call.id for one in ask.messages for call in one.message.tool_calls}
        for one in ask.messages:
            if one.message.tool_calls and known:
                continue  # known by its ids, whatever its text has become
            is_cut = chat.kind == "stopped" and one.message.role == "assistant"
            sent = told(one.message)
            assert any(
                stored == sent or (is_cut and stored.startswith(sent)) for stored in history
            ), f"{chat.kind}: lost"


def told(message: rs.Message) -> str:
    results = [str(b.result) for b in message.blocks if isinstance(b, rs.ToolResponseBlock)]
    return message.role + plain(message.text) + "".join(results)


def world_of(
    url: str, kinds: Sequence[str], apis: Sequence[str], seed: int
) -> tuple[rs.Store, World]:
    rng = random.Random(seed)
    chats = [
        make_chat(number, kind, apis[number % len(apis)], rng) for number, kind in enumerate(kinds)
    ]
    store = rs.Store(url)
    return store, World(store, chats, rng)


@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=3, max_size=8),
)
@examples(60)
@pytest.mark.parametrize("api", HOSTS)
def test_no_thought_crosses_and_nothing_sent_is_lost(api: str, kinds: list[str], seed: int) -> None:
    """BR-002: any conversations of one owner, in any order."""
    store, world = world_of("sqlite://", [*kinds, *kinds], [api], seed)
    with store:
        world.run()


def run_of(kind: str, api: str, number: int, *, seed: int = 1) -> World:
    """Return a world in which so many conversations of one kind have run side by side."""
    rng = random.Random(seed)
    chats = [make_chat(each, kind, api, rng) for each in range(number)]
    with rs.Store("sqlite://") as store:
        world = World(store, chats, rng)
        world.run()
    return world


@pytest.mark.parametrize("api", HOSTS)
def test_parallel_runs_of_one_prompt_get_all_of_their_own_thoughts_back(api: str) -> None:
    """Their calls have ids that no other run has."""
    world = run_of("equal prompts", api, 8)

    assert [len(ids) for ids in world.sessions.values()] == [1] * 8
    assert world.restored == 8 * sum(range(8))


def test_a_conversation_with_a_clock_in_its_system_prompt_is_one_session() -> None:
    """Its calls or its words prove that it is the same one."""
    world = run_of("clock in a loop", "openai.chat", 8)

    assert [len(ids) for ids in world.sessions.values()] == [1] * 8


def test_twins_get_no_thought_and_each_miss_is_reported(tmp_path: Path) -> None:
    """Runs of one prompt with counted ids, byte for byte equal so far: nothing tells them apart."""
    call = {
        "id": "functions.ls:0",
        "type": "function",
        "function": {"name": "ls", "arguments": "{}"},
    }
    messages: list[Any] = [{"role": "user", "content": "Tidy up."}]
    step = {"role": "assistant", "content": "", "tool_calls": [call]}
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        for thought in ("thought A", "thought B"):
            begin(store, messages).record(chat_reply({**step, "reasoning_content": thought}))
        result = {"role": "tool", "tool_call_id": call["id"], "content": "a"}
        found = begin(store, [*messages, step, result])

    assert found.headers["X-Reasoning-Match"] == "new"
    assert found.headers["X-Reasoning-Restored"] == "0/1; missed=1 (ambiguous)"
    assert "thought" not in json.dumps(found.body)


CHANGES: Mapping[str, tuple[Callable[[list[Any]], list[Any]], str, str]] = {
    "nothing": (lambda all: all, "chain", "1/1"),
    "the system prompt": (
        lambda all: [{"role": "system", "content": "Another day."}, *all[1:]],
        "place",
        "0/1; missed=1 (system prompt changed)",
    ),
    "the question": (
        lambda all: [all[0], {"role": "user", "content": "Another question?"}, *all[2:]],
        "new",
        "0/0",
    ),
    "the beginning is left out": (lambda all: all[2:], "new", "0/0"),
    "a picture under the same text": (
        lambda all: [
            all[0],
            {"role": "user", "content": [*PARTS[:1], {**PARTS[1], "image_url": {"url": "data:b"}}]},
            *all[2:],
        ],
        "new",
        "0/0",
    ),
    "white space and accents": (
        lambda all: [
            *all[:2],
            {"role": "assistant", "content": f" {unicodedata.normalize('NFD', LONG)}\n"},
            *all[3:],
        ],
        "chain",
        "1/1",
    ),
}
PARTS: list[Any] = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": "data:a"}},
]
LONG = "A café in the old town, seen from the river, with nine people at its tables, in the rain."


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_client_changes_decides_whether_a_thought_goes_back(change: str) -> None:
    """The headers say by what the conversation was found, and why a thought is missed."""
    apply, match, restored = CHANGES[change]
    asked = [{"role": "system", "content": "A day."}, {"role": "user", "content": PARTS}]
    reply = {"role": "assistant", "content": LONG}
    with rs.Store("sqlite://") as store:
        begin(store, asked).record(chat_reply({**reply, "reasoning_content": "seen"}))
        found = begin(store, apply([*asked, reply, {"role": "user", "content": "And now?"}]))

    assert found.headers["X-Reasoning-Match"] == match
    assert found.headers["X-Reasoning-Restored"] == restored


def test_a_session_that_the_client_names_gets_thoughts_of_a_library(tmp_path: Path) -> None:
    """It has no numbers: its messages are numbered when they are asked for."""
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        session = store.session("chat-42", create=True)
        thought = rs.ThinkingBlock(thought="odd", source_field="reasoning_content")
        session.append([rs.user("Is 91 prime?"), rs.assistant(thought, "No.")])
        messages = [
            {"role": "user", "content": "Is 91 prime?"},
            {"role": "assistant", "content": "No."},
            {"role": "user", "content": "And 97?"},
        ]
        found = begin(store, messages, session_id="chat-42")
        found.record(chat_reply({"role": "assistant", "content": "Yes."}))
        texts = [one.message.text for one in session.history()]

    assert found.headers["X-Reasoning-Match"] == "session"
    assert found.body["messages"][1]["reasoning_content"] == "odd"
    assert texts == ["Is 91 prime?", "No.", "And 97?", "Yes."]


def test_an_erased_question_takes_the_numbers_of_what_follows_it() -> None:
    """A client that still sends it begins a session."""
    asked = [{"role": "user", "content": "My name is Bob."}]
    reply = {"role": "assistant", "content": LONG}
    with rs.Store("sqlite://") as store:
        first = begin(store, asked)
        first.record(chat_reply(reply))
        assert first.session is not None
        first.session.erase(1)
        found = begin(store, [*asked, reply, {"role": "user", "content": "And?"}])

    assert found.headers["X-Reasoning-Match"] == "new"


def test_each_choice_keeps_its_thought() -> None:
    """The client goes on with either."""
    asked = [{"role": "user", "content": "Heads or tails?"}]
    choices = [
        {
            "index": index,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text, "reasoning_content": f"why {text}"},
        }
        for index, text in enumerate(("Heads.", "Tails."))
    ]
    with rs.Store("sqlite://") as store:
        begin(store, asked).record(json.dumps({"id": "c", "choices": choices}).encode())
        for text in ("Heads.", "Tails."):
            reply = {"role": "assistant", "content": text}
            found = begin(store, [*asked, reply, {"role": "user", "content": "Why?"}])
            assert found.body["messages"][1]["reasoning_content"] == f"why {text}"


CALL = {
    "id": "call_a8Kd93kLmQ2xZ0",
    "type": "function",
    "function": {"name": "ls", "arguments": "{}"},
}
RESULT = {"role": "tool", "tool_call_id": CALL["id"], "content": "a"}
ELSEWHERE: Mapping[str, tuple[str, dict[str, Any]]] = {
    "stopped before its text": ("", {"content": "Another answer."}),
    "another call": ("I will", {"content": "I will look.", "tool_calls": [CALL]}),
    "a call without text": ("I will", {"content": None, "tool_calls": [CALL]}),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_the_thought_of_a_stopped_reply_goes_to_no_other_reply(case: str) -> None:
    """The client got its answer elsewhere: nothing of it is a part of what was stopped."""
    text, other = ELSEWHERE[case]
    asked = [{"role": "user", "content": "Tidy up."}]
    with rs.Store("sqlite://") as store:
        first = begin(store, asked)
        first.begin_stream()
        for part in ({"reasoning_content": "stopped"}, {"content": text}):
            event = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": part}]}
            first.feed(sse([event], api="openai.chat").replace(b"data: [DONE]\n\n", b""))
        first.leave()
        assert first.reply is not None
        assert first.reply.thinking
        found = begin(store, [*asked, {"role": "assistant", **other}, RESULT])

    assert "stopped" not in json.dumps(found.body)


@pytest.mark.parametrize("is_open", [True, False], ids=["open turn", "earlier turn"])
def test_a_thought_that_is_left_out_after_a_refusal_is_not_put_back(is_open: bool) -> None:
    """Until it is taken back."""
    reply = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    messages: list[Any] = [{"role": "user", "content": "Tidy up."}, reply, RESULT]
    messages += [] if is_open else [{"role": "user", "content": "And now?"}]
    with rs.Store("sqlite://") as store:
        first = begin(store, messages[:1])
        first.record(chat_reply({**reply, "reasoning_content": "refused"}))
        assert first.session is not None
        (withheld,) = first.session.withhold(2)
        without = begin(store, messages)
        first.session.undo(withheld.id)
        again = begin(store, messages)

    assert "refused" not in json.dumps(without.body)
    assert without.headers["X-Reasoning-Restored"] == "0/1; left_out=1"
    assert again.body["messages"][1]["reasoning_content"] == "refused"


def test_a_signature_that_is_left_out_after_a_refusal_is_not_put_back() -> None:
    """The thought beside it is."""
    asked = {"role": "user", "parts": [{"text": "Tidy up."}]}
    call = {"functionCall": {"name": "ls", "args": {}}}
    thought = {"text": "kept", "thought": True}
    signed = {"role": "model", "parts": [thought, {**call, "thoughtSignature": "cmVmdXNlZA=="}]}
    response = {"functionResponse": {"name": "ls", "response": {"result": "a"}}}
    sent = [
        asked,
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [response]},
    ]
    with rs.Store("sqlite://") as store:
        matcher = EchoMatcher(store, settings=ALL, provider="google")
        path = "/v1beta/models/gemini-3.5-flash:generateContent"
        first = matcher.begin({"contents": [asked]}, path=path)
        assert first is not None
        first.record(json.dumps({"candidates": [{"content": signed, "index": 0}]}).encode())
        assert first.session is not None
        signatures = []
        for part in (None, "seal"):
            if part is not None:
                first.session.withhold(2, 1, part)
            found = matcher.begin({"contents": sent}, path=path)
            assert found is not None
            signatures.append(found.body["contents"][1]["parts"][-1].get("thoughtSignature"))

    assert signatures[0] == "cmVmdXNlZA=="
    assert signatures[1] not in (None, signatures[0])


def begin(store: rs.Store, messages: list[Any], session_id: str | None = None) -> Exchange:
    body = {"model": "deepseek-flash", "messages": messages}
    matcher = EchoMatcher(store, settings=ALL, provider="deepseek")
    found = matcher.begin(body, path="/v1/chat/completions", session_id=session_id)
    assert found is not None
    return found


def chat_reply(message: dict[str, Any]) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice]}).encode()


def test_a_reply_and_its_numbers_are_stored_together(tmp_path: Path) -> None:
    """A crash between them leaves neither."""
    asked = [{"role": "user", "content": "Is 91 prime?"}]
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        begin(store, asked).record(chat_reply({"role": "assistant", "content": "No."}))
        with closing(sqlite3.connect(tmp_path / "chat.db")) as other:
            other.execute(
                "create trigger t before insert on echoes begin select raise(abort, ''); end"
            )
        found = begin(store, [*asked, {"role": "assistant", "content": "No."}, *asked])
        found.record(chat_reply({"role": "assistant", "content": "Still no."}))
        (session,) = store.sessions().items
        told = [one.message.text for one in session.history() if one.message.status == "complete"]

    assert found.error
    assert "Still no." not in told
