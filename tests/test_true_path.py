"""The path that everything else is built around: a stream in, stored, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress.histories import OPEN_LOOP, TWO_TURNS, providers, settings, views

SPLIT_TAGS = ["<th", "ink>Try 7: 7 * 13", " = 91.</thi", "nk>No. ", "91 = 7 x 13."]


def text_stream(pieces: list[str]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield {"choices": [{"index": 0, "delta": {"content": piece}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def native_stream() -> Iterator[dict[str, Any]]:
    yield {"choices": [{"index": 0, "delta": {"reasoning_content": "7 * 13"}}]}
    yield {"choices": [{"index": 0, "delta": {"reasoning_content": " = 91."}}]}
    yield {"choices": [{"index": 0, "delta": {"content": "No."}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12}}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        yield store.session("chat-42", create=True)


def test_tags_split_across_chunks_reach_neither_the_screen_nor_the_store(session: Any) -> None:
    """The answer holds no delimiter, live and stored, and the thought is kept."""
    session.append(rs.user("Is 91 prime?"))
    with session.record(text_stream(SPLIT_TAGS), model="open-model") as reply:
        shown = "".join(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))

    stored = session.history()[-1].message
    assert shown == stored.text == "No. 91 = 7 x 13."
    assert [block.thought for block in stored.thinking] == ["Try 7: 7 * 13 = 91."]


def test_native_reasoning_is_stored_with_the_field_it_came_in(session: Any) -> None:
    """The thought, its field, the usage and the finish are all kept."""
    with session.record(native_stream(), provider="deepseek", model="deepseek-chat") as reply:
        list(reply)

    message = reply.stored.message
    assert message.blocks == (
        rs.ThinkingBlock(thought="7 * 13 = 91.", source_field="reasoning_content"),
        rs.TextBlock(text="No."),
    )
    assert (message.finish_reason, message.status) == ("stop", "complete")
    assert (message.usage.input, message.usage.output, message.usage.reasoning) == (9, 12, None)
    assert message.origin == rs.Origin(
        provider="deepseek", api="openai.chat", model="deepseek-chat"
    )


def test_ec_001_a_model_that_does_not_think_is_the_normal_case(session: Any) -> None:
    """EC-001: no reasoning, no thinking block, no error."""
    with session.record(text_stream(["Just text."]), model="m") as reply:
        list(reply)

    assert reply.stored.message.blocks == (rs.TextBlock(text="Just text."),)


def test_br_008_a_setting_takes_effect_in_the_next_request(session: Any) -> None:
    """BR-008, EC-004: settings are read for each request; the history is the same."""
    session.append(list(TWO_TURNS))
    before = [item.message for item in session.history()]
    assert "reasoning_content" not in repr(session.build_request().body)

    session.settings.set("reasoning.includeInContext", True)

    assert "Bergen is wetter." in repr(session.build_request().body)
    assert [item.message for item in session.history()] == before


INCLUDED = {"reasoning.includeInContext": True}
CHANGED: dict[str, Callable[[rs.Store, rs.Session, pytest.MonkeyPatch], object]] = {
    "session": lambda _, session, __: session.settings.set("reasoning.includeInContext", True),
    "profile": lambda store, _, __: store.settings.profiles.set("mine", INCLUDED),
    "environment": lambda _, __, patch: patch.setenv("REASONING_STORE_INCLUDE_IN_CONTEXT", "yes"),
}
COUNTED: dict[str, Callable[[rs.Session], int]] = {
    "build_request": lambda session: session.build_request().tokens.effective,
    "usage": lambda session: session.usage().effective,
    "what_if": lambda session: session.what_if().current.tokens.effective,
    "compression": lambda session: session.compression(limit=9_000).effective,
}


@pytest.mark.parametrize("verb", COUNTED)
@pytest.mark.parametrize("layer", CHANGED)
def test_br_008_each_verb_asks_each_layer_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, verb: str
) -> None:
    """BR-008, EC-005: by a handle that was there before, in a store that was open."""
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        session = store.session("chat-42", create=True)
        session.append(list(TWO_TURNS))
        store.settings.profiles.set("mine", {})
        session.settings.use("mine")
        before = COUNTED[verb](session)
        CHANGED[layer](store, session, monkeypatch)

        assert COUNTED[verb](session) > before


def test_br_004_what_stays_home_makes_no_conversation_shorter(session: Any) -> None:
    """BR-004: a plan goes by what would be sent, and not by what is stored."""
    session.append(list(TWO_TURNS))
    sent, stored = session.usage().effective, session.usage().raw
    room = {"limit": (sent + stored) // 2, "threshold": 1}

    assert sent < room["limit"] < stored
    assert session.compression(**room).action == "none"
    session.settings.set("reasoning.includeInContext", True)
    assert session.compression(**room).action != "none"


def test_br_002_no_setting_decides_what_is_stored(session: Any) -> None:
    """BR-002, BR-006: with reasoning disabled, what comes anyway is stored in full."""
    session.settings.set("reasoning.enabled", False)
    session.settings.set("reasoning.stripFromContext", "all")
    with session.record(native_stream(), provider="deepseek") as reply:
        list(reply)

    assert [block.thought for block in session.history()[0].message.thinking] == ["7 * 13 = 91."]


def test_err_001_a_bad_setting_leaves_the_current_one(session: Any) -> None:
    """ERR-001: refused with what is allowed, and nothing has changed."""
    session.settings.set("reasoning.effort", "high")
    with pytest.raises(rs.SettingError, match="one of: none, minimal"):
        session.settings.set("reasoning.effort", "huge")

    resolved = session.settings.resolved()["reasoning.effort"]
    assert (resolved.value, resolved.layer) == ("high", "session")


def test_unsetting_gives_the_key_back_to_the_weaker_layers(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is read when it is asked, not when the store was opened."""
    session.settings.set("reasoning.effort", "high")
    session.settings.unset("reasoning.effort")
    monkeypatch.setenv("REASONING_STORE_EFFORT", "low")

    resolved = session.settings.resolved()["reasoning.effort"]
    assert (resolved.value, resolved.layer) == ("low", "environment")


def test_the_request_defaults_to_who_gave_the_last_recorded_reply(session: Any) -> None:
    """A session's verbs know whom they talk to."""
    session.append(rs.user("Is 91 prime?"))
    with session.record(native_stream(), provider="deepseek", model="deepseek-chat") as reply:
        list(reply)

    assert session.build_request().body["model"] == "deepseek-chat"


def test_usage_prints_effective_and_limit(session: Any) -> None:
    """Effective over limit, without grouping."""
    session.append(rs.user("word " * 150_000))
    usage = session.usage(limit=212_000)

    assert str(usage) == f"{usage.effective}/212000"


def test_usage_at_an_earlier_message_is_that_of_the_request_then(session: Any) -> None:
    """Every position answers, not only the head."""
    session.append(list(TWO_TURNS))
    for position in range(1, len(TWO_TURNS) + 1):
        then = rs.effective_tokens(
            TWO_TURNS[:position], settings={"reasoning.includeInContext": True}
        )
        usage = session.usage(at=position, settings={"reasoning.includeInContext": True})
        assert (usage.effective, usage.raw) == (then.effective, then.raw)


@given(views, st.lists(settings, min_size=1, max_size=4), providers)
def test_br_004_usage_from_carried_state_is_the_count_of_the_request(
    messages: list[rs.Message], chosen: list[rs.ReasoningSettings], provider: str | None
) -> None:
    """BR-004: for any history, policy and provider, three ways give one number."""
    with rs.Store("sqlite://") as store:
        session = store.session()
        if messages:
            session.append(messages)
        for policy in chosen:
            usage = session.usage(settings=policy, provider=provider, model="m")
            request = session.build_request(settings=policy, provider=provider, model="m")
            free = rs.effective_tokens(messages, settings=policy, provider=provider, model="m")
            assert request.tokens == free
            assert (usage.effective, usage.raw, usage.fixed, usage.exactness) == (
                free.effective,
                free.raw,
                free.fixed,
                free.exactness,
            )


@pytest.mark.parametrize("how", ["break", "exception", "stream dies"])
def test_a_reply_that_is_left_early_is_kept_as_interrupted(session: Any, how: str) -> None:
    """What arrived is stored, the stream is closed, and the exception goes on unchanged."""
    closed: list[bool] = []

    def stream() -> Iterator[dict[str, Any]]:
        try:
            yield from text_stream(["<think>Half a th", "ought</think>Half an ans"])
            raise ConnectionError("gone")
        finally:
            closed.append(True)

    def leave(reply: Any) -> None:
        for chunk in reply:
            if isinstance(chunk, rs.TextChunk) and how == "break":
                break
            if isinstance(chunk, rs.TextChunk) and how == "exception":
                raise ZeroDivisionError

    expected = {"break": None, "exception": ZeroDivisionError, "stream dies": ConnectionError}[how]
    if expected is None:
        with session.record(stream(), model="m") as reply:
            leave(reply)
    else:
        with pytest.raises(expected), session.record(stream(), model="m") as reply:
            leave(reply)

    message = session.history()[-1].message
    assert (message.status, message.text) == ("interrupted", "Half an ans")
    assert [block.thought for block in message.thinking] == ["Half a thought"]
    assert closed == [True]


def test_reasoning_that_was_cut_off_is_never_visible_and_never_lost(session: Any) -> None:
    """A turn of reasoning alone survives an interruption."""
    with session.record(text_stream(["<think>Only half"])) as reply:
        for chunk in reply:
            if isinstance(chunk, rs.ReasoningChunk):
                break

    assert session.history()[-1].message.blocks[0].thought == "Only half"
    assert session.history()[-1].message.text == ""


def test_nothing_arrived_nothing_is_stored(session: Any) -> None:
    """A stream that never spoke leaves no message."""
    with session.record(iter([]), model="m") as reply:
        list(reply)

    assert reply.stored is None
    assert session.history() == []


def test_a_recording_repeated_under_its_key_is_refused_before_anything_is_read(
    session: Any,
) -> None:
    """The key names the attempt; the error carries what was stored the first time."""
    with session.record(text_stream(["Hi"]), idempotency_key="k") as reply:
        list(reply)
    second = text_stream(["Hi again"])

    with (
        pytest.raises(rs.Conflict) as refused,
        session.record(second, idempotency_key="k") as again,
    ):
        list(again)

    assert refused.value.stored.position == reply.stored.position
    assert len(session.history()) == 1


def test_further_choices_become_forks_next_to_the_first(session: Any) -> None:
    """Choice 0 goes on; each other one is a branch that starts at the same place."""
    session.append(rs.user("Say a number."))
    stream = [
        {"choices": [{"index": 1, "delta": {"content": "two"}}]},
        {"choices": [{"index": 0, "delta": {"content": "one"}}]},
    ]
    with session.record(iter(stream), model="m") as reply:
        list(reply)

    texts = [[s.message.text for s in session.branch(b.id).history()] for b in session.branches()]
    assert texts == [["Say a number.", "one"], ["Say a number.", "two"]]


def test_a_tool_loop_goes_round(session: Any) -> None:
    """Reasoning, call, answer: the next request carries the reasoning its provider demands."""
    session.append(list(OPEN_LOOP))
    messages = session.build_request(provider="moonshot", model="kimi-k2-thinking").body["messages"]

    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert messages[3]["reasoning_content"] == "Need the weather tool."
    assert messages[3]["content"] == "One moment."
    assert "reasoning_content" not in messages[1]


def test_another_owners_session_is_not_found(tmp_path: Path) -> None:
    """Absent and another's are one answer."""
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        store.for_owner("user-7").session("chat-42", create=True)

        with pytest.raises(rs.NotFound) as other:
            store.for_owner("user-8").session("chat-42")
        with pytest.raises(rs.NotFound) as absent:
            store.for_owner("user-9").session("chat-42")

    assert str(other.value) == str(absent.value)


def test_opening_a_session_twice_is_the_same_session(session: Any, tmp_path: Path) -> None:
    """``create`` makes what is missing and returns what is there."""
    session.append(rs.user("hello"))
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        assert len(store.session("chat-42", create=True).history()) == 1
        assert len(store.session("chat-42").history()) == 1


def test_thinking_is_masked_before_it_is_written(tmp_path: Path) -> None:
    """The masker stands before every write; the application's chunks are its own."""
    path = tmp_path / "chat.db"
    masker = rs.SecretMasker(values=["hunter2-hunter2"])
    with rs.Store(f"sqlite:///{path}", masker=masker) as store:
        session = store.session("s", create=True)
        with session.record(
            text_stream(["<think>hunter2-hun", "ter2</think>hunter2-hunter2"])
        ) as reply:
            shown = "".join(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))
        assert shown == "hunter2-hunter2"
        assert "hunter2-hunter2" not in repr(session.history())

    assert b"hunter2-hunter2" not in path.read_bytes()
