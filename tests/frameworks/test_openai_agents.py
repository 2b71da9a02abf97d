"""OpenAI's Agents SDK on the store: its items, its runner, its own tests."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.memory import OpenAIConversationsSession, Session
from openai import AsyncOpenAI, BadRequestError

import reasoning_store as rs
from reasoning_store.integrations import http
from reasoning_store.integrations.openai_agents import StoredSession, read_items, write_items
from reasoning_store.server.options import ServerOptions
from tests.docs.provider import Provider
from tests.frameworks import pages
from tests.frameworks.foreign_suites import fetch_sources, run_suite
from tests.integrations.loops import STEPS, thoughts_in
from tests.server.serving import serving

THOUGHT = "The capital of Norway has a weather station."
SEAL = "gAAAAABciphertext-of-a-thought"
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [
        {"type": "summary_text", "text": THOUGHT},
        {"type": "summary_text", "text": "I ask it."},
    ],
    "encrypted_content": SEAL,
    "status": None,
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city":  "Oslo"}',
    "status": "completed",
}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [
        {"type": "output_text", "text": "It is 4 C in Oslo.", "annotations": [], "logprobs": []}
    ],
}
TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "How is the weather in Oslo?"},
    REASONING,
    CALL,
    {"type": "function_call_output", "call_id": "call_1", "output": "4 C"},
    {
        "id": "rs_2",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Four degrees, says the station."}],
        "provider_data": {"model": "kimi-k2-thinking"},
    },
    ANSWER,
]
OTHERS: list[dict[str, Any]] = [
    {"role": "assistant", "content": "<think>A thought in a text.</think>\n\nAn answer after it."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief from now on."}]},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look at this picture."},
            {
                "type": "input_image",
                "image_url": "data:image/png;base64,iVBORw0KGgo=",
                "detail": "auto",
            },
        ],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
    {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABother"},
    {"type": "item_reference", "id": "msg_0"},
    {"role": "user", "content": ""},
    {"type": "a newer one", "of": [1, 1.0, True, None]},
]


@pytest.fixture(autouse=True)
def untraced() -> None:
    set_tracing_disabled(True)


@pytest.fixture
def session(store: rs.Store) -> StoredSession:
    return StoredSession("chat-42", store)


def stored_text(store: rs.Store) -> str:
    return "\n".join(store.export_lines())


# Items


def test_items_come_back_equal(session: StoredSession) -> None:
    """Reasoning, calls, short forms, hosted tools, items that are newer than this code."""

    async def run() -> list[Any]:
        await session.add_items(TURN)
        await session.add_items(OTHERS)
        return await session.get_items()

    assert isinstance(session, Session)
    assert json.dumps(asyncio.run(run())) == json.dumps([*TURN, *OTHERS])


def test_a_run_of_items_is_one_message(store: rs.Store, session: StoredSession) -> None:
    """So that policy, counts and search know it; a thought is stored once."""
    asyncio.run(session.add_items(TURN))
    history = store.session("chat-42").history()

    assert [[block.type for block in one.message.blocks] for one in history] == [
        ["text"],
        ["thinking", "tool_call"],
        ["tool_response"],
        ["thinking", "text"],
    ]
    assert history[3].message.origin is not None
    assert history[3].message.origin.model == "kimi-k2-thinking"
    for one in history:
        assert THOUGHT not in json.dumps(dict(one.message.metadata or {}))
        assert SEAL not in json.dumps(dict(one.message.metadata or {}))


def test_erased_reasoning_is_gone_with_the_ids_that_name_it(
    store: rs.Store, session: StoredSession
) -> None:
    """A service refuses the id of a call or a text whose reasoning is missing."""
    asyncio.run(session.add_items([*TURN, *OTHERS]))
    store.session("chat-42").erase(only="reasoning")
    items = asyncio.run(session.get_items())
    left = stored_text(store)

    assert [item for item in items if item.get("type") == "reasoning"] == []
    assert items[1] == {name: value for name, value in CALL.items() if name != "id"}
    assert items[3] == {
        "type": "message",
        "role": "assistant",
        "content": "It is 4 C in Oslo.",
    }
    assert items[4]["content"] == "An answer after it."
    for gone in (THOUGHT, "I ask it.", SEAL, "says the station", "A thought in a text"):
        assert gone not in left


def test_a_masked_secret_is_masked_in_the_items(url: str) -> None:
    """Wherever it stands."""
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    with rs.Store(url, masker=rs.SecretMasker([secret])) as store:
        session = StoredSession("chat-42", store)
        reasoning = {**REASONING, "summary": [{"type": "summary_text", "text": f"It is {secret}"}]}
        reasoning.pop("encrypted_content")
        asyncio.run(session.add_items([{"role": "user", "content": secret}, reasoning, ANSWER]))
        items = asyncio.run(session.get_items())

    assert len(items) == 3
    assert secret not in json.dumps(items)


def test_what_was_stored_otherwise_is_read_as_items(
    store: rs.Store, session: StoredSession
) -> None:
    """By a recording, the transport, an edit on a page."""
    ours = store.session("chat-42", create=True)
    thought = rs.ThinkingBlock(thought=THOUGHT)
    call = rs.ToolCallBlock(id="c", name="get_weather", parameters={"city": "Oslo"})
    ours.append([rs.user("Hello"), rs.assistant(thought, call)])
    ours.append([rs.tool(rs.ToolResponseBlock(call_id="c", result="4 C")), rs.assistant("Hi.")])

    kinds = [item.get("type", "message") for item in asyncio.run(session.get_items())]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize("count", [-1, 0, 1, 2, 3, 5, 100])
def test_a_limit_is_one_of_items(session: StoredSession, count: int) -> None:
    """The latest, also where it parts a message; a negative one is no limit."""
    asyncio.run(session.add_items(TURN))
    items = asyncio.run(session.get_items(count))

    assert items == (TURN if count < 0 else TURN[max(len(TURN) - count, 0) :])


def test_items_are_popped_one_by_one(store: rs.Store, session: StoredSession) -> None:
    """The last first; what was popped stays on the branch that had it."""

    async def run() -> list[Any]:
        await session.add_items(TURN)
        popped = [await session.pop_item() for _ in range(3)]
        await session.add_items([ANSWER])
        assert await session.get_items() == [*TURN[:3], ANSWER]
        popped += [await session.pop_item() for _ in range(5)]
        return popped

    assert asyncio.run(run()) == [*reversed(TURN[3:]), ANSWER, *reversed(TURN[:3]), None]
    assert asyncio.run(session.get_items()) == []
    assert len(store.session("chat-42").branch(1).history()) == 4


def test_a_cleared_session_keeps_its_title(store: rs.Store, session: StoredSession) -> None:
    """Its messages are deleted on all branches."""
    store.session("chat-42", create=True, title="Weather")
    asyncio.run(session.add_items(TURN))
    asyncio.run(session.pop_item())
    asyncio.run(session.clear_session())

    assert asyncio.run(session.get_items()) == []
    assert store.session("chat-42").title == "Weather"
    assert THOUGHT not in stored_text(store)
    asyncio.run(StoredSession("absent", store).clear_session())
    assert asyncio.run(StoredSession("absent", store).pop_item()) is None


@pytest.mark.parametrize("items", [["text"], [{"role": "user", "content": object()}], [{1: {2}}]])
def test_a_wrong_item_is_refused_with_all_of_its_batch(
    session: StoredSession, items: list[Any]
) -> None:
    """The error names its place."""
    with pytest.raises(rs.InvalidCall):
        asyncio.run(session.add_items([TURN[0], *items]))

    assert asyncio.run(session.get_items()) == []


def test_two_writers_lose_nothing(store: rs.Store) -> None:
    """Two sessions of the same id, in threads with event loops of their own."""
    items = [{"role": "user", "content": f"Question {n}"} for n in range(10)]

    def write(item: dict[str, Any]) -> None:
        asyncio.run(StoredSession("chat-42", store).add_items([item]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, items))

    found = asyncio.run(StoredSession("chat-42", store).get_items())
    assert sorted(item["content"] for item in found) == sorted(item["content"] for item in items)


def test_a_cancelled_write_is_finished_first(session: StoredSession) -> None:
    """However often it is cancelled."""

    async def run() -> list[Any]:
        adding = asyncio.ensure_future(session.add_items(TURN))
        await asyncio.sleep(0)
        for _ in range(3):
            adding.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await adding
        return await session.get_items()

    assert asyncio.run(run()) == TURN


# The runner


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def reasoning_of(body: Any) -> int:
    return sum(item.get("type") == "reasoning" for item in body["input"])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_agent_sends_the_chosen_reasoning(
    store: rs.Store, provider: Provider, streamed: bool
) -> None:
    """The open turn keeps what the service demands; the next one has nothing of it."""
    session = StoredSession("chat-42", store, settings={"reasoning.stripFromContext": "priorTurns"})
    asyncio.run(run_turns(provider, "gpt-5", session, streamed=streamed))

    sent = [reasoning_of(asked.body) for asked in provider.asked]
    history = store.session("chat-42").history()
    assert provider.refused == []
    assert sent[STEPS + 1] == 0
    assert len(history) == 2 * (2 + 2 * STEPS)
    assert sum(len(one.message.thinking) for one in history) == 2 * (STEPS + 1)


@pytest.mark.parametrize("include", [False, True])
def test_all_or_no_reasoning_is_accepted(
    store: rs.Store, provider: Provider, include: bool
) -> None:
    """What is left out takes the ids that name it along."""
    session = StoredSession("chat-42", store)
    store.session("chat-42", create=True).settings.set("reasoning.includeInContext", include)
    asyncio.run(run_turns(provider, "gpt-5", session, streamed=False))

    assert provider.refused == []
    assert reasoning_of(provider.asked[-1].body) >= (2 * STEPS + 1 if include else 0)


def test_a_filter_leaves_the_items_of_hosted_tools(session: StoredSession) -> None:
    """Only reasoning is left out."""
    (message,) = read_items([REASONING, OTHERS[3], CALL])

    assert write_items(message, withheld={0}) == [
        OTHERS[3],
        {name: value for name, value in CALL.items() if name != "id"},
    ]


# The transport


async def run_agent(
    provider: Provider, model: str, kind: Any = OpenAIChatCompletionsModel, **options: Any
) -> str:
    asks = ModelSettings()
    if kind is OpenAIResponsesModel:
        asks = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
    async with AsyncOpenAI(
        base_url=f"{provider.address}/v1", api_key="k", max_retries=0, **options
    ) as client:
        chosen = kind(model, client)
        agent = Agent(name="a", model=chosen, model_settings=asks, tools=[get_weather])
        result = await Runner.run(agent, "How is the weather?", max_turns=50)
    return str(result.final_output)


@pytest.mark.parametrize(
    ("host", "model"), [("deepseek", "deepseek-flash"), ("moonshot", "kimi-k2-thinking")]
)
def test_chat_completions_pass_through_the_transport(
    provider: Provider, host: str, model: str
) -> None:
    """In a loop of twenty tool steps."""
    with rs.Store("sqlite://") as store:
        kept = http.async_client(store, provider=host)
        answer = asyncio.run(run_agent(provider, model, http_client=kept))
        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 + 2 * STEPS


def test_without_the_transport_kimi_refuses_the_same_loop(provider: Provider) -> None:
    """The SDK leaves the thinking out."""
    with pytest.raises(BadRequestError, match="reasoning_content"):
        asyncio.run(run_agent(provider, "kimi-k2-thinking"))


@pytest.mark.parametrize(
    ("kind", "model"),
    [(OpenAIChatCompletionsModel, "deepseek-flash"), (OpenAIResponsesModel, "gpt-5")],
)
def test_without_the_transport_two_services_get_the_reasoning(
    provider: Provider, kind: Any, model: str
) -> None:
    """The SDK sends its own items to Responses, and their text to DeepSeek's models."""
    answer = asyncio.run(run_agent(provider, model, kind))

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert thoughts_in(provider.asked[-1].body) == STEPS


CHAT_HOSTS: dict[str, tuple[str, dict[str, Any]]] = {
    "DeepSeek, named": ("deepseek-flash", {"provider": "deepseek", "model": "deepseek-flash"}),
    "DeepSeek, included": ("deepseek-flash", {"settings": {"reasoning.includeInContext": True}}),
    "DeepSeek": ("deepseek-flash", {}),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CHAT_HOSTS)
def test_the_filter_sends_what_a_host_of_chat_completions_demands(
    provider: Provider, case: str, streamed: bool
) -> None:
    """The protocol is that of the provider, or of the agent's model."""
    model, named = CHAT_HOSTS[case]
    with rs.Store("sqlite://") as store:
        session = StoredSession("chat-42", store, **named)
        asyncio.run(run_turns(provider, model, session, streamed=streamed))
        history = store.session("chat-42").history()

    assert provider.refused == []
    assert len(history) == 2 * (2 + 2 * STEPS)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("host", "model"),
    [("deepseek", "deepseek-flash"), ("moonshot", "kimi-k2-thinking"), ("openai", "gpt-5")],
)
def test_a_session_and_the_transport_store_each_reply_once(
    provider: Provider, host: str, model: str, streamed: bool
) -> None:
    """The session stores it; the transport adds the thoughts that the SDK lost."""
    with rs.Store("sqlite://") as store:
        kept = http.async_client(store, provider=host)
        session = StoredSession("chat-42", store, provider=host, model=model)
        asyncio.run(run_turns(provider, model, session, streamed=streamed, http_client=kept))
        (found,) = store.sessions().items
        history = found.history()

    assert provider.refused == []
    assert found.id == "chat-42"
    assert [one.message.role for one in history] == TWO_TURNS
    assert all(one.message.thinking for one in history if one.message.role == "assistant")


TWO_TURNS = ["user", *["assistant", "tool"] * STEPS, "assistant"] * 2


async def run_turns(
    provider: Provider, model: str, session: StoredSession, *, streamed: bool, **options: Any
) -> None:
    """Run two turns with a session and its filter."""
    is_chat = not model.startswith("gpt")
    kind: Any = OpenAIChatCompletionsModel if is_chat else OpenAIResponsesModel
    include = {} if is_chat else {"response_include": ["reasoning.encrypted_content"]}
    async with AsyncOpenAI(
        base_url=f"{provider.address}/v1", api_key="k", max_retries=0, **options
    ) as client:
        agent = Agent(
            name="a",
            model=kind(model, client),
            model_settings=ModelSettings(store=False, **include),
            tools=[get_weather],
        )
        config = RunConfig(call_model_input_filter=session.filter_input)
        for text in ("How is the weather?", "And now?"):
            given: dict[str, Any] = {"session": session, "run_config": config, "max_turns": 50}
            if streamed:
                result = Runner.run_streamed(agent, text, **given)
                async for _ in result.stream_events():
                    pass
            else:
                await Runner.run(agent, text, **given)


# Its own tests, and our pages

MEMORY = [
    "tests/memory/test_compaction_model_visibility.py",
    "tests/memory/test_openai_responses_compaction_session.py",
    "tests/memory/test_session.py",
    "tests/memory/test_session_context_wrapper.py",
    "tests/memory/test_session_limit.py",
    "tests/memory/test_session_persistence_sanitize.py",
]
RUNNER = [
    "tests/deferred_session_writes",
    "tests/test_agent_runner.py",
    "tests/test_agent_runner_streamed.py",
    "tests/test_cancel_streaming.py",
    "tests/test_hitl_session_scenario.py",
    "tests/test_run_impl_resume_paths.py",
    "tests/test_runner_guardrail_resume.py",
    "tests/test_soft_cancel.py",
    "tests/utils/test_simple_session.py",
]
_COMPACTION = "tests/memory/test_openai_responses_compaction_session.py"
_CLASS = f"{_COMPACTION}::TestOpenAIResponsesCompactionSession"
_INSIDES = "is about the connections, the tables and the locks inside SQLiteSession"
_PRIVATE = "is about the private hook by which compaction replaces a part of a history"
LEFT_OUT = {
    **{
        f"{MEMORY[0]}::{name}": _PRIVATE
        for name in (
            "test_automatic_compaction_does_not_reload_unbounded_hidden_history",
            "test_backend_read_limit_cannot_hide_retained_history_from_compaction",
            "test_expired_read_overhead_does_not_authorize_hidden_history",
        )
    },
    f"{_CLASS}::test_automatic_compaction_rollback_budget[True]": _PRIVATE,
    f"{_CLASS}::test_settled_clear_failure_invalidates_response_chain": _INSIDES,
    f"{_CLASS}::test_settled_pop_failure_invalidates_response_chain": _INSIDES,
    **{
        f"{MEMORY[2]}::test_sqlite_session_{name}": _INSIDES
        for name in (
            "close_closes_worker_thread_connections",
            "close_retries_quarantined_connection",
            "closed_rejects_empty_add_items",
            "closes_retired_connections_before_the_next_allocation",
            "failed_add_items_releases_write_lock",
            "failed_clear_session_rolls_back",
            "failed_pop_item_releases_write_lock",
            "file_lock_is_shared_across_instances",
            "get_items_limit_skips_corrupt_newest_rows",
            "get_items_session_settings_limit_skips_corrupt_rows",
            "keeps_connections_of_live_worker_threads",
            "pop_item_returns_none_after_dropping_only_corrupt_rows",
            "pop_item_skips_corrupt_most_recent",
            "post_commit_cancellation_propagates_after_known_outcome",
            "reaps_connections_from_exited_worker_threads",
            "rollback_failure_evicts_connection",
        )
    },
    "tests/test_run_impl_resume_paths.py::"
    "test_handoff_resume_after_cancelled_compaction_commits": _INSIDES,
}
"""The tests that are not run. ``test_compaction_suffix.py`` and ``test_sqlalchemy_compaction.py``
are about the private hook alone, ``test_openai_conversations_session.py`` about OpenAI's service.
"""


# OpenAI's Conversations API, served by us


async def run_session(items: list[Any], client: AsyncOpenAI) -> tuple[list[Any], Any, list[Any]]:
    session = OpenAIConversationsSession(openai_client=client)
    await session.add_items(items)
    found = await session.get_items()
    latest = await session.get_items(limit=2)
    popped = await session.pop_item()
    left = await session.get_items()
    assert latest == found[-2:]
    await session.clear_session()
    assert await session.get_items() == []
    return found, popped, left


def test_their_own_session_has_its_items_on_our_server(store: rs.Store) -> None:
    """``OpenAIConversationsSession``, unchanged: what it adds it gets back, and pops the last."""

    async def run(address: str) -> tuple[list[Any], Any, list[Any]]:
        async with AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
            return await run_session(TURN, client)

    with serving(store) as address:
        found, popped, left = asyncio.run(run(address))

    assert [item.get("type") for item in found] == [item.get("type", "message") for item in TURN]
    assert found[1]["summary"] == REASONING["summary"]
    assert found[1]["encrypted_content"] == SEAL
    assert popped == found[-1]
    assert left == found[:-1]


def test_an_agent_keeps_their_own_session_on_our_server(
    store: rs.Store, provider: Provider
) -> None:
    """Its model and its session ask the same server; no item is there twice."""

    async def run(address: str) -> tuple[str, list[Any]]:
        async with AsyncOpenAI(
            base_url=f"{address}/v1",
            api_key="k",
            max_retries=0,
            default_headers={"X-Reasoning-Store": "yes"},
        ) as client:
            session = OpenAIConversationsSession(openai_client=client)
            agent = Agent(
                name="a",
                model=OpenAIResponsesModel("gpt-5", client),
                model_settings=ModelSettings(
                    store=False, response_include=["reasoning.encrypted_content"]
                ),
                tools=[get_weather],
            )
            for text in ("How is the weather?", "And now?"):
                await Runner.run(agent, text, session=session, max_turns=50)
            return await session._get_session_id(), await session.get_items()

    options = ServerOptions(upstream=f"{provider.address}/v1", provider="openai")
    with serving(store, options) as address:
        id, items = asyncio.run(run(address))

    kinds = [item.get("type") for item in items]
    assert provider.refused == []
    assert kinds.count("function_call") == kinds.count("function_call_output") == 2 * STEPS
    assert kinds.count("reasoning") == 2 * (STEPS + 1)
    assert kinds.count("message") == 4
    assert len(store.session(id).history()) == 2 * (2 + 2 * STEPS)


# Their own tests


@pytest.mark.parametrize(("paths", "least"), [(MEMORY, 200), (RUNNER, 700)], ids=["memory", "run"])
def test_the_tests_of_the_sdk_pass(tmp_path: Path, paths: list[str], least: int) -> None:
    """With our session in the place of ``SQLiteSession`` and of their list in memory."""
    sources = fetch_sources("openai-agents", tmp_path)
    left_out = {name: why for name, why in LEFT_OUT.items() if name.startswith(tuple(paths))}
    passed = run_suite(sources, paths, stand_in="openai_agents_sessions", left_out=left_out)
    assert passed > least


@pytest.mark.parametrize("block", pages.blocks("openai_agents"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
