"""Pydantic AI on the store: its messages, its conversations, its agents."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.deepseek import DeepSeekProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

import reasoning_store as rs
from reasoning_store.integrations import http
from reasoning_store.integrations.pydantic_ai import (
    ReasoningPolicy,
    SessionConversationStore,
    read_message,
    write_message,
)
from tests.docs.provider import Provider
from tests.frameworks import pages
from tests.integrations.loops import STEPS, thoughts_in

THOUGHTS = ("The capital has a weather station.", "I ask it for the temperature.", "Four degrees.")
SEALS = ("gAAAAABciphertext-of-a-thought", "EqQBsignature-of-a-thought", "EmwKredacted-thought")
USAGE = RequestUsage(input_tokens=40, output_tokens=12, output_reasoning_tokens=5)
MESSAGES: list[ModelMessage] = [
    ModelRequest(
        parts=[SystemPromptPart("Be brief, please."), UserPromptPart("How is the weather?")]
    ),
    ModelResponse(
        parts=[
            ThinkingPart(THOUGHTS[0], id="rs_1", signature=SEALS[0], provider_name="openai"),
            ThinkingPart(THOUGHTS[1], id="rs_1", provider_name="openai"),
            ToolCallPart("get_weather", '{"city":  "Oslo"}', "call_1", id="fc_1"),
        ],
        usage=USAGE,
        model_name="gpt-5",
        provider_name="openai",
    ),
    ModelRequest(parts=[ToolReturnPart("get_weather", {"temperature": 4.0}, "call_1")]),
    ModelResponse(
        parts=[
            ThinkingPart(THOUGHTS[2], signature=SEALS[1], provider_name="anthropic"),
            ThinkingPart("", id="redacted_thinking", signature=SEALS[2], provider_name="anthropic"),
            TextPart("It is 4 C in Oslo.", id="msg_1"),
            NativeToolCallPart("web_search", {"query": "Oslo"}, "ws_1"),
        ],
        model_name="claude-opus-5",
        provider_name="anthropic",
    ),
    ModelRequest(
        parts=[RetryFeedbackPart("Say it in Fahrenheit, please.", retry=RetryInfo("model_retry"))]
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("get_weather", "No such city.", "call_2", outcome="retried"),
            UserPromptPart(
                [
                    "Look at this:",
                    ImageUrl("https://example.com/a.png"),
                    BinaryImage(b"\xff\xfe\xfb\xef" * 40, media_type="image/png"),
                ]
            ),
        ]
    ),
    ModelResponse(
        parts=[ThinkingPart("It is 39 F there.", id="reasoning_content", provider_name="deepseek")],
        provider_name="deepseek",
        model_name="deepseek-flash",
        finish_reason="stop",
    ),
    ModelRequest(parts=[SystemPromptPart("Be polite from now on.")]),
    ModelRequest(parts=[]),
    ModelResponse(parts=[]),
]


def stored_text(store: rs.Store) -> str:
    return "\n".join(store.export_lines())


async def save_all(store: rs.Store) -> SessionConversationStore:
    conversations = SessionConversationStore(store)
    await conversations.save(Conversation(messages=list(MESSAGES), conversation_id="chat-42"))
    return conversations


# Messages


def test_messages_come_back_equal(store: rs.Store) -> None:
    """Each is one message of the session, whose id is that of its entry."""

    async def run() -> None:
        conversations = await save_all(store)
        loaded = await conversations.load("chat-42")
        assert loaded is not None
        assert loaded.messages == MESSAGES
        entries = await conversations.load_entries("chat-42")
        assert entries is not None
        history = store.session("chat-42").history()
        assert [entry.id for entry in entries] == [one.id for one in history]
        assert [entry.parent_id for entry in entries] == [None, *[e.id for e in entries[:-1]]]
        assert await conversations.read_entry(entries[3].id) == entries[3]

    asyncio.run(run())


def test_a_thought_is_a_block_and_stored_once(store: rs.Store) -> None:
    """So that policy, counts and search know it."""
    asyncio.run(save_all(store))
    history = store.session("chat-42").history()

    assert [[block.type for block in one.message.blocks] for one in history[:4]] == [
        ["text"],
        ["thinking", "tool_call"],
        ["tool_response"],
        ["thinking", "thinking", "text"],
    ]
    assert history[1].message.usage == rs.Usage(input=40, output=12, reasoning=5)
    assert history[1].message.thinking[0].encrypted == SEALS[0]
    assert history[3].message.thinking[0].signature == SEALS[1]
    assert history[6].message.thinking[0].source_field == "reasoning_content"
    picture = base64.b64encode(b"\xff\xfe\xfb\xef" * 40).decode()
    assert picture not in json.dumps(dict(history[5].message.metadata or {}))
    assert isinstance(history[5].message.blocks[-1], rs.MediaBlock)
    for one in history:
        about = json.dumps(dict(one.message.metadata or {}))
        assert [text for text in (*THOUGHTS, *SEALS) if text in about] == []


def test_erased_reasoning_is_gone_with_the_ids_that_name_it(store: rs.Store) -> None:
    """Texts and calls stay."""

    async def run() -> None:
        conversations = await save_all(store)
        store.session("chat-42").erase(only="reasoning")
        loaded = await conversations.load("chat-42")
        assert loaded is not None
        reply = loaded.messages[1]
        assert [(part.part_kind, getattr(part, "id", None)) for part in reply.parts] == [
            ("tool-call", None)
        ]
        kinds = {part.part_kind for message in loaded.messages for part in message.parts}
        assert "thinking" not in kinds

    asyncio.run(run())
    left = stored_text(store)
    assert [text for text in (*THOUGHTS, *SEALS, "It is 39 F") if text in left] == []


def test_what_was_stored_otherwise_is_written_as_its_messages() -> None:
    """By a recording, the transport, an edit on a page."""
    thought = rs.ThinkingBlock(thought="Hm.", source_field="reasoning_content")
    call = rs.ToolCallBlock(id="c", name="f", parameters={"a": 1})
    tool = rs.ToolResponseBlock(call_id="c", tool_name="f", result="4 C")
    made = [rs.user("Hello"), rs.assistant(thought, "Hi.", call), rs.tool(tool)]

    kinds = [[part.part_kind for part in write_message(one).parts] for one in made]  # type: ignore[union-attr]
    assert kinds == [["user-prompt"], ["thinking", "text", "tool-call"], ["tool-return"]]
    assert write_message(rs.Message(role="user", status="erased")) is None


# Conversations


async def outcome(work: Any) -> Any:
    """Return what a call gives, or the kind of its refusal."""
    try:
        return await work
    except (ConversationConflict, UserError) as error:
        return type(error).__name__


def turn(number: int) -> list[ModelMessage]:
    thinking = ThinkingPart(f"A thought of turn {number}.", signature=f"seal-{number}")
    reply = ModelResponse(
        parts=[thinking, TextPart(f"Answer {number}.")], provider_name="anthropic"
    )
    return [ModelRequest(parts=[UserPromptPart(f"Question {number}?")]), reply]


class Walker:
    """Does the same things to two stores and compares what they give."""

    def __init__(self, stores: list[ConversationStore], seed: int) -> None:
        self.stores = stores
        self.random = random.Random(seed)
        self.names = ["a", "b"]
        self.held: dict[str, list[Conversation]] = {}
        self.step = 0

    async def both(self, name: str, **given: Any) -> list[Any]:
        return [await outcome(getattr(store, name)(**given)) for store in self.stores]

    async def walk(self) -> None:
        self.step += 1
        steps = [self.turn] * 4 + [self.branch, self.fork, self.rewrite, self.stale, self.delete]
        await self.random.choice(steps)()
        await self.compare()

    async def turn(self) -> None:
        name, limit = self.random.choice(self.names), self.random.choice([None, None, 0, 1, 3])
        scope = self.random.choice([None, "u"])
        held = [
            await store.load(name, limit=limit) or Conversation(conversation_id=name)
            for store in self.stores
        ]
        self.held[name] = held
        await self.save(held, turn(self.step), scope)

    async def save(self, held: list[Conversation], added: Any, scope: str | None = None) -> None:
        found = []
        for store, conversation in zip(self.stores, held, strict=True):
            conversation.messages.extend(added)
            given: Any = conversation
            found.append(await outcome(store.save(given, scope=scope)))
        assert len({one if isinstance(one, str) else len(one) for one in found}) == 1

    async def stale(self) -> None:
        if self.held:
            await self.save(self.held[self.random.choice([*self.held])], turn(self.step))

    async def rewrite(self) -> None:
        name = self.random.choice(self.names)
        loaded = [await store.load(name) for store in self.stores]
        held = [
            Conversation(
                messages=[*one.messages[: len(one.messages) // 2]],
                conversation_id=name,
                revision=one.revision,
            )
            for one in loaded
            if one is not None
        ]
        if held:
            await self.save(held, turn(self.step))

    async def branch(self) -> None:
        name = self.random.choice(self.names)
        at, from_branch = self.random.randrange(6), self.random.random() < 0.5
        found = []
        for store in self.stores:
            record = await store.read_record(name)
            if record is None:
                return
            to = (
                {"from_entry": record.branches[0]}
                if from_branch and record.branches
                else {"at": at}
            )
            found.append(await outcome(store.branch(name, expected_revision=record.revision, **to)))
        assert [getattr(one, "messages", one) for one in found[:1]] == [
            getattr(one, "messages", one) for one in found[1:]
        ]

    async def fork(self) -> None:
        name, new = self.random.choice(self.names), f"f{self.step}"
        at = self.random.choice([None, 0, 1, 2, 9])
        first, second = await self.both(
            "fork", conversation_id=name, at=at, new_conversation_id=new
        )
        assert getattr(first, "messages", first) == getattr(second, "messages", second)
        if not isinstance(first, str):
            self.names.append(new)

    async def delete(self) -> None:
        if self.random.random() < 0.3:
            await self.both("delete", conversation_id=self.random.choice(self.names))

    async def compare(self) -> None:
        for name in self.names:
            for limit in (None, 2):
                first, second = await self.both("load", conversation_id=name, limit=limit)
                assert (first is None) == (second is None)
                if first is not None:
                    assert first.messages == second.messages
                    assert first.usage == second.usage
        for scope in (None, "u"):
            lists = await self.both("list_conversations", scope=scope)
            facts = [
                [
                    (one.conversation_id, one.scope, one.forked_from, len(one.branches))
                    for one in found
                ]
                for found in lists
            ]
            assert facts[0] == facts[1]


@pytest.mark.parametrize("seed", range(20))
def test_it_behaves_like_the_store_in_memory(url: str, seed: int) -> None:
    """A random walk: turns, windows, branches, forks, rewrites, stale saves, deletions."""

    async def run(store: rs.Store) -> None:
        walker = Walker([SessionConversationStore(store), InMemoryConversationStore()], seed)
        for _ in range(25):
            await walker.walk()

    with rs.Store(url) as store:
        asyncio.run(run(store))
        assert store.verify().ok


def test_of_two_processes_that_save_one_revision_one_wins(url: str) -> None:
    """Of the other nothing is stored."""

    async def save(store: rs.Store, held: Conversation, number: int) -> Any:
        held.messages.extend(turn(number))
        return await outcome(SessionConversationStore(store).save(held))

    async def run(first: rs.Store, second: rs.Store) -> None:
        await SessionConversationStore(first).save(Conversation(conversation_id="chat-42"))
        held = [await SessionConversationStore(one).load("chat-42") for one in (first, second)]
        found = await asyncio.gather(
            *(
                save(one, conversation, number)
                for number, (one, conversation) in enumerate(
                    zip((first, second), held, strict=True)
                )
                if conversation is not None
            )
        )
        assert sorted(isinstance(one, str) for one in found) == [False, True]
        assert first.session("chat-42").head() == 2

    with rs.Store(url) as first, rs.Store(url) as second:
        asyncio.run(run(first, second))


def test_owners_do_not_see_each_other(store: rs.Store) -> None:
    """A conversation of another owner is absent."""

    async def run() -> None:
        await SessionConversationStore(store.for_owner("ann")).save(
            Conversation(messages=turn(1), conversation_id="chat-42")
        )
        bob = SessionConversationStore(store.for_owner("bob"))
        assert await bob.load("chat-42") is None
        assert await bob.list_conversations() == []

    asyncio.run(run())


def test_a_deleted_conversation_leaves_no_bytes(store: rs.Store) -> None:
    """And a fork of it keeps its copy."""

    async def run() -> None:
        conversations = SessionConversationStore(store)
        await conversations.save(Conversation(messages=turn(1), conversation_id="chat-42"))
        await conversations.fork("chat-42", at=1, new_conversation_id="fork")
        await conversations.delete("chat-42")
        assert "Answer 1." not in stored_text(store)
        fork = await conversations.load("fork")
        assert fork is not None
        assert fork.messages == turn(1)[:1] or len(fork.messages) == 1

    asyncio.run(run())


# The capability


def make_model(name: str, provider: Provider, **options: Any) -> Any:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

    if name == "anthropic":
        claude = AsyncAnthropic(api_key="k", base_url=provider.address, **options)
        return AnthropicModel("claude-opus-5", provider=AnthropicProvider(anthropic_client=claude))
    client = AsyncOpenAI(api_key="k", base_url=f"{provider.address}/v1", **options)
    if name == "responses":
        return OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=client))
    return OpenAIChatModel("deepseek-flash", provider=DeepSeekProvider(openai_client=client))


@pytest.mark.parametrize("name", ["anthropic", "responses", "deepseek"])
@pytest.mark.parametrize("strip", ["all", "none"])
def test_an_agent_sends_the_chosen_thinking(
    store: rs.Store, provider: Provider, name: str, strip: str
) -> None:
    """A strict host gets what it demands; the conversation keeps everything."""

    async def run() -> None:
        conversations = SessionConversationStore(store)
        settings = {"reasoning.includeInContext": True, "reasoning.stripFromContext": strip}
        policy = ReasoningPolicy(store, settings=settings)
        agent = Agent(make_model(name, provider), capabilities=[policy])

        @agent.tool_plain
        def get_weather(city: str) -> str:
            return "4 C"

        for text in ("How is the weather?", "And now?"):
            held = await conversations.load("chat-42") or Conversation(conversation_id="chat-42")
            await conversations.save(await agent.run(text, conversation=held))

    asyncio.run(run())
    history = store.session("chat-42").history()

    assert provider.refused == []
    assert sum(bool(one.message.thinking) for one in history) == 2 * (STEPS + 1)
    sent = thoughts_in(provider.asked[STEPS + 1].body)
    if strip == "none":
        assert sent == STEPS + 1
    elif name != "deepseek":
        assert sent == 0


async def run_turns(store: rs.Store, models: list[Any]) -> None:
    """Run a turn with each model in one conversation of the store."""
    conversations = SessionConversationStore(store)
    for text, model in zip(("How is the weather?", "And now?"), models, strict=True):
        agent = Agent(model, capabilities=[ReasoningPolicy(store)])

        @agent.tool_plain
        def get_weather(city: str) -> str:
            return "4 C"

        held = await conversations.load("chat-42") or Conversation(conversation_id="chat-42")
        await conversations.save(await agent.run(text, conversation=held))


def test_a_host_gets_the_field_that_it_demands_after_another_makers_turn(
    store: rs.Store, provider: Provider
) -> None:
    """DeepSeek gets no thought that Claude has sealed, and refuses a call without the field."""
    models = [make_model(name, provider) for name in ("anthropic", "deepseek")]
    asyncio.run(run_turns(store, models))

    assert provider.refused == []
    sent = provider.asked[STEPS + 1].body["messages"]
    calls = [one["reasoning_content"] for one in sent if one.get("tool_calls")]
    assert calls == [""] * STEPS


@pytest.mark.parametrize("name", ["anthropic", "responses", "deepseek"])
def test_a_conversation_and_the_transport_store_each_reply_once(
    provider: Provider, name: str
) -> None:
    """The conversation stores it, also where it is new."""
    with rs.Store("sqlite://") as store:
        kept = http.async_client(store)
        asyncio.run(run_turns(store, [make_model(name, provider, http_client=kept)] * 2))
        (found,) = store.sessions().items
        history, report = found.history(), store.report(by="session")

    assert provider.refused == []
    assert found.id == "chat-42"
    assert len(history) == 2 * (2 + 2 * STEPS)
    assert [row.input for row in report] == [40 * 2 * (STEPS + 1)]


@pytest.mark.parametrize("name", ["anthropic", "responses", "deepseek"])
def test_without_the_capability_all_of_its_own_thinking_is_sent(
    provider: Provider, name: str
) -> None:
    """Where the history is the framework's own."""
    agent = Agent(make_model(name, provider))

    @agent.tool_plain
    def get_weather(city: str) -> str:
        return "4 C"

    asyncio.run(agent.run("How is the weather?"))
    assert provider.refused == []
    assert thoughts_in(provider.asked[-1].body) == STEPS


def test_a_withheld_thought_takes_its_ids_along() -> None:
    """OpenAI refuses an id whose reasoning is missing."""
    written = write_message(read_message(MESSAGES[1]), withheld={0})

    assert written == replace(
        MESSAGES[1],
        parts=[replace(MESSAGES[1].parts[2], id=None)],  # type: ignore[arg-type, type-var]
    )


@pytest.mark.parametrize("block", pages.blocks("pydantic_ai"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
