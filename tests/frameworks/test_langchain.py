"""LangChain on the store: its chat models, histories and agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

import reasoning_store as rs
from reasoning_store.integrations import http
from reasoning_store.integrations.langchain import (
    ReasoningMiddleware,
    StoredMessageHistory,
    read_message,
)
from tests.docs.provider import Provider
from tests.frameworks import pages
from tests.frameworks.foreign_suites import fetch_sources, run_suite
from tests.frameworks.langchain_messages import PLAIN, SECRETS, THINKING, THOUGHT
from tests.integrations.loops import STEPS, thoughts_in

MODELS = {
    "ChatDeepSeek": (ChatDeepSeek, "api_base"),
    "ChatOpenAI": (ChatOpenAI, "base_url"),
}
MESSAGES = [*PLAIN, *THINKING.values()]


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


# The transport


def run_loop(model: Any, *, streamed: bool) -> Any:
    bound = model.bind_tools([get_weather])
    messages: list[Any] = [HumanMessage("How is the weather?")]
    while True:
        reply = None
        if streamed:
            for piece in bound.stream(messages):
                reply = piece if reply is None else reply + piece
        else:
            reply = bound.invoke(messages)
        assert reply is not None
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        messages += [ToolMessage("4 C", tool_call_id=call["id"]) for call in reply.tool_calls]


def make_model(name: str, provider: Provider, **options: Any) -> Any:
    kind, address = MODELS[name]
    where = {address: f"{provider.address}/v1"}
    return kind(model="deepseek-flash", api_key="k", max_retries=0, **where, **options)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", MODELS)
def test_a_loop_of_twenty_steps_passes(provider: Provider, name: str, streamed: bool) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        client = http.client(store, provider="deepseek")
        answer = run_loop(make_model(name, provider, http_client=client), streamed=streamed)

        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 + 2 * STEPS


@pytest.mark.parametrize("name", MODELS)
def test_without_the_transport_the_same_loop_is_refused(provider: Provider, name: str) -> None:
    """The framework drops the thinking on its way out."""
    with pytest.raises(Exception, match="reasoning_content"):
        run_loop(make_model(name, provider), streamed=False)


@pytest.mark.parametrize("passes", [True, False], ids=["with", "without"])
def test_items_of_responses_are_sent_as_they_came(provider: Provider, passes: bool) -> None:
    """``ChatOpenAI`` keeps them itself; the transport changes none of them."""
    with rs.Store("sqlite://") as store:
        options = {"http_client": http.client(store, provider="openai")} if passes else {}
        model = ChatOpenAI(
            model="gpt-5",
            api_key="k",
            base_url=f"{provider.address}/v1",
            max_retries=0,
            use_responses_api=True,
            output_version="responses/v1",
            store=False,
            include=["reasoning.encrypted_content"],
            **options,
        )
        answer = run_loop(model, streamed=False)

    assert answer[-1]["text"].startswith("Done at")
    assert provider.refused == []
    assert thoughts_in(provider.asked[-1].body) == STEPS


def test_blocks_of_claude_are_sent_as_they_came(provider: Provider) -> None:
    """``ChatAnthropic`` keeps them itself."""
    run_loop(make_claude(provider), streamed=False)

    assert provider.refused == []
    assert thoughts_in(provider.asked[-1].body) == STEPS


# The history


def test_messages_come_back_equal(store: rs.Store) -> None:
    """In the order in which they were added, of the same classes, with all of their fields."""
    history = StoredMessageHistory(store, "chat-42")
    history.add_messages(MESSAGES)
    again = StoredMessageHistory(store, "chat-42").messages

    assert again == MESSAGES
    assert [type(one) for one in again] == [type(one) for one in MESSAGES]


@pytest.mark.parametrize("kind", THINKING)
def test_a_thought_is_stored_as_a_block_and_only_there(kind: str) -> None:
    """So requests, counts, search and erasure know it."""
    read = read_message(THINKING[kind])
    secrets = [secret for secret in SECRETS if secret in repr(read.blocks)]

    assert secrets or kind == "responses, without a text"
    assert [secret for secret in secrets if secret in repr(read.metadata)] == []


def test_an_erasure_of_reasoning_leaves_the_chat(store: rs.Store) -> None:
    """No thought and no seal of one is in what comes back, or anywhere in the session."""
    history = StoredMessageHistory(store, "chat-42")
    history.add_messages(MESSAGES)
    store.session("chat-42").erase(only="reasoning")
    left = history.messages
    exported = "".join(store.export_lines())

    assert [secret for secret in SECRETS if secret in repr(left) + exported] == []
    assert left[: len(PLAIN)] == [*PLAIN]
    assert [one.tool_calls for one in left[len(PLAIN) :]] == [
        one.tool_calls for one in THINKING.values()
    ]
    assert "msg_1" not in repr(left)  # an id of an item whose reasoning is gone is refused


@pytest.mark.parametrize("kind", THINKING)
def test_a_reply_can_be_sent_by_the_store(kind: str) -> None:
    """Its blocks are those that the provider's own protocol gives: they go back sealed."""
    message = read_message(THINKING[kind])
    origin = message.origin or rs.Origin(provider="deepseek", model="deepseek-flash")
    settings = {"reasoning.includeInContext": True, "reasoning.floor": "off"}
    request = rs.build_request(
        [rs.user("How is the weather?"), message],
        settings=settings,
        provider=origin.provider,
        model=origin.model,
        api=origin.api,
    )
    opaque = [block for block in message.thinking if block.opaque]

    assert [verdict.rule for verdict in request.verdicts if not verdict.kept] == []
    assert len(request.verdicts) == len(message.thinking)
    assert all((one.signature or one.encrypted or "") in repr(request.body) for one in opaque)


def test_a_session_that_was_recorded_is_a_history_too(store: rs.Store) -> None:
    """Its messages are written in LangChain's standard blocks."""
    thought = rs.ThinkingBlock(thought=THOUGHT, signature="c2ln", source_field="thinking")
    call = rs.ToolCallBlock(id="t1", name="w", parameters={"city": "Oslo"})
    session = store.session("chat-42", create=True)
    session.append(
        [
            rs.user("How is the weather in Oslo?"),
            rs.assistant(thought, call, origin=rs.Origin(provider="anthropic", model="claude")),
            rs.tool(rs.ToolResponseBlock(call_id="t1", tool_name="w", result="4 C")),
            rs.assistant(rs.ThinkingBlock(thought="cold"), "4 C."),
        ]
    )
    user, asked, result, answer = StoredMessageHistory(store, "chat-42").messages

    assert user == HumanMessage("How is the weather in Oslo?")
    assert asked.content_blocks == [
        {"type": "reasoning", "reasoning": THOUGHT, "extras": {"signature": "c2ln"}},
        {"type": "tool_call", "id": "t1", "name": "w", "args": {"city": "Oslo"}},
    ]
    assert result == ToolMessage("4 C", tool_call_id="t1", name="w")
    assert answer == AIMessage("4 C.", additional_kwargs={"reasoning_content": "cold"})


def test_clearing_keeps_the_session(store: rs.Store) -> None:
    """Its title stays, and it is an empty history, as one that was never made."""
    store.session("chat-42", create=True, title="Weather")
    history = StoredMessageHistory(store, "chat-42")
    history.add_messages(MESSAGES)
    history.clear()
    StoredMessageHistory(store, "chat-43").clear()

    assert history.messages == StoredMessageHistory(store, "chat-43").messages == []
    assert [(one.id, one.title) for one in store.sessions().items] == [("chat-42", "Weather")]


@pytest.mark.parametrize(
    "message",
    [RemoveMessage(id="1"), ToolMessage("4 C", tool_call_id="c1", artifact=object())],
    ids=["an order to a graph", "an object that is no JSON"],
)
def test_a_message_that_cannot_be_stored_is_refused_with_all_of_its_batch(
    store: rs.Store, message: Any
) -> None:
    """The error names the place."""
    history = StoredMessageHistory(store, "chat-42")
    with pytest.raises(rs.InvalidCall):
        history.add_messages([HumanMessage("one"), message])

    assert history.messages == []


# The middleware


CONFIG = {"configurable": {"thread_id": "chat-42"}, "recursion_limit": 200}


def run_turns(agent: Any, *texts: str, is_async: bool = False) -> Any:
    """Run a turn for each text; return the messages of the thread."""
    if not is_async:
        turns = [agent.invoke({"messages": [HumanMessage(text)]}, CONFIG) for text in texts]
        return turns[-1]["messages"]

    async def run() -> Any:
        return [await agent.ainvoke({"messages": [HumanMessage(text)]}, CONFIG) for text in texts]

    return asyncio.run(run())[-1]["messages"]


def make_claude(provider: Provider) -> Any:
    return ChatAnthropic(
        model="claude-opus-5", api_key="k", base_url=provider.address, max_retries=0
    )


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_agent_stores_its_thread_and_sends_the_chosen_thoughts(
    store: rs.Store, provider: Provider, is_async: bool
) -> None:
    """The open turn keeps the thoughts that the host demands; the next turn has none of them."""
    keeper = ReasoningMiddleware(store, settings={"reasoning.stripFromContext": "all"})
    agent = create_agent(
        make_claude(provider), [get_weather], middleware=[keeper], checkpointer=InMemorySaver()
    )
    state = run_turns(agent, "How is the weather?", "And now?", is_async=is_async)
    history = StoredMessageHistory(store, "chat-42").messages

    assert provider.refused == []
    assert history == state
    sent = [thoughts_in(asked.body) for asked in provider.asked]
    assert sent[: STEPS + 1] == [*range(STEPS + 1)]
    assert sent[STEPS + 1] == 0
    assert sum("thinking" in repr(message.content) for message in state) == 2 * (STEPS + 1)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_middleware_and_the_transport_store_each_reply_once(
    provider: Provider, is_async: bool
) -> None:
    """The middleware stores it; the transport adds the thoughts that the class lost."""
    with rs.Store("sqlite://") as store:
        make = http.async_client if is_async else http.client
        name = "http_async_client" if is_async else "http_client"
        model = make_model("ChatDeepSeek", provider, **{name: make(store, provider="deepseek")})
        agent = create_agent(
            model,
            [get_weather],
            middleware=[ReasoningMiddleware(store)],
            checkpointer=InMemorySaver(),
        )
        run_turns(agent, "How is the weather?", "And now?", is_async=is_async)
        (found,) = store.sessions().items
        history = found.history()

    assert provider.refused == []
    assert found.id == "chat-42"
    assert len(history) == 2 * (2 + 2 * STEPS)
    assert sum(bool(one.message.thinking) for one in history) == 2 * (STEPS + 1)


def test_a_thought_that_the_application_lost_goes_back(store: rs.Store, provider: Provider) -> None:
    """It keeps texts and calls alone, as many front ends do, and has no checkpointer."""
    keeper = ReasoningMiddleware(
        store,
        session_id="chat-42",
        settings={"reasoning.includeInContext": True},
    )
    agent = create_agent(make_claude(provider), [], middleware=[keeper])
    first = HumanMessage("How is the weather?")
    answer = agent.invoke({"messages": [first]})["messages"][-1]
    kept = AIMessage(answer.text, tool_calls=answer.tool_calls)
    results = [ToolMessage("4 C", tool_call_id=call["id"]) for call in kept.tool_calls]
    agent.invoke({"messages": [first, kept, *results]})

    assert provider.refused == []
    assert [thoughts_in(asked.body) for asked in provider.asked] == [0, 1]


def test_an_edited_thread_continues_on_a_branch(store: rs.Store, provider: Provider) -> None:
    """The old course stays stored."""
    keeper = ReasoningMiddleware(store, session_id="chat-42")
    agent = create_agent(make_claude(provider), [get_weather], middleware=[keeper])
    state = run_turns(agent, "How is the weather?")
    agent.invoke({"messages": [*state, HumanMessage("And now?")]}, CONFIG)
    agent.invoke({"messages": [*state, HumanMessage("And later?")]}, CONFIG)
    session = store.session("chat-42")

    assert [branch.head for branch in session.branches()] == [2 * (2 + 2 * STEPS)] * 2
    assert session.get(len(state) + 1).message.text == "And later?"


def test_a_question_to_a_model_that_fails_is_stored(store: rs.Store) -> None:
    """What the user said is stored before the model is asked."""
    keeper = ReasoningMiddleware(store, session_id="chat-42")
    model = ChatAnthropic(
        model="claude-opus-5", api_key="k", base_url="http://127.0.0.1:1", max_retries=0
    )
    agent = create_agent(model, [], middleware=[keeper])
    with pytest.raises(Exception, match=r"[Cc]onnection"):
        agent.invoke({"messages": [HumanMessage("How is the weather?")]})

    assert [one.message.role for one in store.session("chat-42").history()] == ["user"]


def test_an_artifact_that_is_no_json_stays_in_the_graph(store: rs.Store) -> None:
    """A tool may return any object beside its text; the model never gets it."""
    given = [
        HumanMessage("How is the weather?"),
        AIMessage("", tool_calls=[{"name": "w", "args": {}, "id": "c1"}]),
        ToolMessage("4 C", tool_call_id="c1", artifact=object()),
        ToolMessage("5 C", tool_call_id="c2", artifact={"celsius": 5}),
    ]
    model = GenericFakeChatModel(messages=iter(["4 C."]))
    agent = create_agent(model, [], middleware=[ReasoningMiddleware(store, session_id="chat-42")])
    state = agent.invoke({"messages": given})["messages"]
    artifacts = [one.artifact for one in state if isinstance(one, ToolMessage)]
    stored = StoredMessageHistory(store, "chat-42").messages

    assert artifacts == [given[2].artifact, {"celsius": 5}]
    assert [one.artifact for one in stored if isinstance(one, ToolMessage)] == [
        None,
        {"celsius": 5},
    ]
    assert len(stored) == len(state)


# LangChain's own tests, and our pages

HISTORY_TESTS = [
    "tests/unit_tests/runnables/test_history.py",
    "tests/unit_tests/chat_history/test_chat_history.py",
]
SQL_TESTS = ["tests/unit_tests/chat_message_histories/test_sql.py"]


def test_the_history_tests_of_langchain_core_pass(tmp_path: Path) -> None:
    """With our history in the place of its ``InMemoryChatMessageHistory``."""
    left_out = {
        f"{HISTORY_TESTS[1]}::test_chat_history_deprecated[InMemory]": (
            "is about the docstring of their class"
        )
    }
    sources = fetch_sources("langchain-core", tmp_path)
    assert run_suite(sources, HISTORY_TESTS, stand_in="langchain_histories", left_out=left_out) > 20


def test_the_sql_history_tests_of_langchain_community_pass(tmp_path: Path) -> None:
    """With our history in the place of its ``SQLChatMessageHistory``."""
    left_out = {
        f"{SQL_TESTS[0]}::test_model_no_session_id_field_error": (
            "is about the SQLAlchemy model that their class takes"
        )
    }
    sources = fetch_sources("langchain-community", tmp_path)
    assert run_suite(sources, SQL_TESTS, stand_in="langchain_histories", left_out=left_out) > 5


@pytest.mark.parametrize("block", pages.blocks("langchain"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
