"""The Agent Development Kit on the store.

Its own session tests are in no published package: these promises are those of its documentation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

import reasoning_store as rs
from reasoning_store.integrations.google_adk import StoredSessionService
from tests.frameworks import pages

THOUGHT: Final = "Oslo is cold in winter, so a tool is needed."
SEAL: Final = b"a seal of the thought \xff\xfe"
CALL_SEAL: Final = b"a seal on the call \xff\xfe\xfd"
MINE: Final = {"app_name": "weather", "user_id": "user-7"}


def event(*parts: types.Part, author: str = "agent", role: str = "model", **more: Any) -> Event:
    content = types.Content(role=role, parts=[*parts]) if parts else None
    return Event(author=author, invocation_id="i1", content=content, **more)


def events() -> list[Event]:
    """Return an event of each kind."""
    return [
        event(types.Part(text="How is it?"), author="user", role="user"),
        event(
            types.Part(text=THOUGHT, thought=True, thought_signature=SEAL),
            types.Part(text="One moment, please."),
            types.Part(
                function_call=types.FunctionCall(id="c1", name="w", args={"b": None, "a": 1.0}),
                thought_signature=CALL_SEAL,
            ),
            model_version="gemini-3-pro",
            finish_reason="STOP",
            long_running_tool_ids={"c2", "c1"},
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=30, candidates_token_count=4, thoughts_token_count=8
            ),
        ),
        event(
            types.Part(
                function_response=types.FunctionResponse(id="c1", name="w", response={"t": 4})
            ),
            role="user",
        ),
        event(
            types.Part(inline_data=types.Blob(data=b"\xff\xfe" * 40, mime_type="image/png")),
            types.Part(file_data=types.FileData(file_uri="gs://b/f", mime_type="audio/mpeg")),
            types.Part(executable_code=types.ExecutableCode(code="4", language="PYTHON")),
            custom_metadata={"score": 0.5},
        ),
        event(actions=EventActions(state_delta={"city": "Oslo", "none": None})),
        event(error_code="500", error_message="overloaded"),
    ]


def on_service(
    store: rs.Store, work: Callable[[StoredSessionService], Coroutine[Any, Any, Any]]
) -> Any:
    return asyncio.run(work(StoredSessionService(store)))


async def get(service: StoredSessionService, **more: Any) -> Session:
    found = await service.get_session(**MINE, session_id="s1", **more)
    assert found is not None
    return found


def test_events_come_back_equal(store: rs.Store) -> None:
    """With their state, and the time of the last one."""

    async def work(service: StoredSessionService) -> None:
        session = await service.create_session(**MINE, session_id="s1")
        given = events()
        for one in given:
            await service.append_event(session, one)
        read = await get(service)

        assert read.events == session.events == given
        assert read.state == session.state == {"city": "Oslo", "none": None}
        assert read.last_update_time == given[-1].timestamp

    on_service(store, work)


def test_an_erasure_of_reasoning_leaves_the_chat(store: rs.Store) -> None:
    """No thought and no seal of one is in the events, or anywhere in the session."""

    async def work(service: StoredSessionService) -> Any:
        session = await service.create_session(**MINE, session_id="s1")
        for one in events():
            await service.append_event(session, one)
        stored = store.for_owner("weather/user-7").session("s1")
        assert [block.thought for block in stored.get(2).message.thinking] == [THOUGHT]
        assert THOUGHT not in repr(stored.get(2).message.metadata)
        stored.erase(only="reasoning")
        return (await get(service)).events

    left = on_service(store, work)
    exported = "".join(store.export_lines())
    text, call = left[1].content.parts

    assert (text.text, call.function_call.name, call.thought_signature) == (
        "One moment, please.",
        "w",
        None,
    )
    assert THOUGHT not in exported
    assert "thoughtSig" not in exported


def test_the_state_of_apps_users_and_sessions_is_shared_as_far_as_its_prefix_says(
    store: rs.Store,
) -> None:
    """``temp:`` is seen by the invocation and never stored."""

    async def work(service: StoredSessionService) -> None:
        first = {"app:a": 1, "user:u": None, "s": [1], "temp:t": 1}
        session = await service.create_session(**MINE, session_id="s1", state=first)
        changes = {"app:a": 2, "user:v": 3, "s": 4, "temp:t": 5}
        await service.append_event(session, event(actions=EventActions(state_delta=changes)))
        other = await service.create_session(**MINE, session_id="s2")
        stranger = await service.create_session(
            app_name="weather", user_id="user-8", session_id="s1"
        )
        elsewhere = await service.create_session(app_name="news", user_id="user-7")

        assert session.state["temp:t"] == 5
        assert (await get(service)).state == {"app:a": 2, "user:u": None, "user:v": 3, "s": 4}
        assert other.state == {"app:a": 2, "user:u": None, "user:v": 3}
        assert stranger.state == {"app:a": 2}
        assert elsewhere.state == {}
        assert await service.get_user_state(**MINE) == {"u": None, "v": 3}

    on_service(store, work)


def test_sessions_are_listed_the_oldest_first(store: rs.Store) -> None:
    """Of one user, or of all users of the app, with their state and without events."""

    async def work(service: StoredSessionService) -> None:
        made = [
            await service.create_session(app_name="weather", user_id=user, session_id=name)
            for user, name in (("user-7", "s1"), ("user-8", "s2"), ("user-7", "s3"))
        ]
        await service.create_session(app_name="weather/2", user_id="user-7")
        await service.append_event(made[0], event(actions=EventActions(state_delta={"k": 1})))
        mine = (await service.list_sessions(**MINE)).sessions
        everyone = (await service.list_sessions(app_name="weather")).sessions

        assert [(one.id, one.events, one.state) for one in mine] == [
            ("s3", [], {}),
            ("s1", [], {"k": 1}),
        ]
        assert [one.id for one in everyone] == ["s2", "s3", "s1"]

    on_service(store, work)


def test_a_session_is_made_once_and_deleted_without_a_word(store: rs.Store) -> None:
    """Spaces around its id do not count; an absent one is None."""

    async def work(service: StoredSessionService) -> None:
        await service.create_session(**MINE, session_id=" s1 ")
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**MINE, session_id="s1")
        assert (await service.create_session(**MINE)).id

        await service.delete_session(**MINE, session_id="s1 ")
        await service.delete_session(**MINE, session_id="s1")
        assert await service.get_session(**MINE, session_id="s1") is None
        gone = Session(id="s1", **MINE)
        with pytest.raises(SessionNotFoundError):
            await service.append_event(gone, event())

    on_service(store, work)


def test_a_part_of_the_events_is_read(store: rs.Store) -> None:
    """By number, and from a time on."""

    async def work(service: StoredSessionService) -> None:
        session = await service.create_session(**MINE, session_id="s1")
        for number in range(1, 6):
            await service.append_event(session, event(timestamp=float(number)))

        async def times(**config: Any) -> list[float]:
            found = await get(service, config=GetSessionConfig(**config))
            return [one.timestamp for one in found.events]

        assert await times(num_recent_events=0) == []
        assert await times(num_recent_events=2) == [4, 5]
        assert await times(after_timestamp=4) == [4, 5]
        assert await times(after_timestamp=2, num_recent_events=3) == [3, 4, 5]

    on_service(store, work)


def test_an_event_is_stored_once(store: rs.Store) -> None:
    """Delivered again it changes nothing; another with its id is another event."""

    async def work(service: StoredSessionService) -> None:
        session = await service.create_session(**MINE, session_id="s1")
        one = event(types.Part(text="once"), id="e1")
        other = event(types.Part(text="other"), id="e1")
        partial = event(types.Part(text="a piece"), partial=True)
        for given in (one, partial, one.model_copy(deep=True), other):
            assert await service.append_event(session, given) == given

        assert session.events == (await get(service)).events == [one, other]

    on_service(store, work)


def test_a_session_that_another_has_changed_is_stale(store: rs.Store) -> None:
    """Nothing of the event is stored, nor of its state."""

    async def work(service: StoredSessionService) -> None:
        await service.create_session(**MINE, session_id="s1")
        mine, other = await get(service), await get(service)
        await service.append_event(other, event())
        late = event(actions=EventActions(state_delta={"k": 1, "user:k": 1}))
        with pytest.raises(ValueError, match="modified"):
            await service.append_event(mine, late)

        assert (await get(service)).state == {}
        again = await get(service)
        await service.append_event(again, late)
        assert (await get(service)).state == {"k": 1, "user:k": 1}

    on_service(store, work)


def test_the_parallel_agents_of_one_run_all_append(store: rs.Store) -> None:
    """They share the session object; each event has a place."""

    async def work(service: StoredSessionService) -> None:
        session = await service.create_session(**MINE, session_id="s1")
        deltas = [EventActions(state_delta={f"n{number}": number}) for number in range(8)]
        await asyncio.gather(*(service.append_event(session, event(actions=one)) for one in deltas))
        read = await get(service)

        assert {one.id for one in read.events} == {one.id for one in session.events}
        assert len(read.events) == 8
        assert read.state == session.state == {f"n{number}": number for number in range(8)}

    on_service(store, work)


def test_a_session_that_was_recorded_is_read_as_events(store: rs.Store) -> None:
    """Its thoughts are parts with their seal."""
    session = store.for_owner("weather/user-7").session("s1", create=True)
    thought = rs.ThinkingBlock(thought=THOUGHT, signature="c2VhbA==")
    call = rs.ToolCallBlock(id="c1", name="w", parameters={"city": "Oslo"})
    session.append(
        [
            rs.user("How is it?"),
            rs.assistant(thought, call),
            rs.tool(rs.ToolResponseBlock(call_id="c1", tool_name="w", result="4 C")),
        ]
    )

    async def work(service: StoredSessionService) -> list[Event]:
        found = await get(service)
        await service.append_event(found, event(types.Part(text="4 C.")))
        return (await get(service)).events

    asked, thinking, result, _ = on_service(store, work)

    assert (asked.author, asked.content.parts[0].text) == ("user", "How is it?")
    assert thinking.content.parts[0].thought_signature == b"seal"
    assert thinking.content.parts[1].function_call.args == {"city": "Oslo"}
    assert result.content.parts[0].function_response.response == {"result": "4 C"}


class Model(BaseLlm):
    """A model that thinks, and notes what it was asked."""

    asked: ClassVar[list[Any]] = []

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        self.asked.append(llm_request.contents)
        parts = [types.Part(text=THOUGHT, thought=True), types.Part(text="4 C.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def test_an_agent_runs_on_stored_sessions(store: rs.Store) -> None:
    """Each turn finds the turns before it, also in another process's service."""
    model = Model(model="test")
    model.asked.clear()

    async def work(_: StoredSessionService) -> None:
        for number in range(2):
            service = StoredSessionService(store)
            agent = LlmAgent(name="weather", model=model)
            runner = Runner(
                app_name="weather", agent=agent, session_service=service, auto_create_session=True
            )
            message = types.Content(role="user", parts=[types.Part(text=f"Question {number}?")])
            async for _event in runner.run_async(
                user_id="user-7", session_id="s1", new_message=message
            ):
                pass

    on_service(store, work)
    history = store.for_owner("weather/user-7").session("s1").history()

    assert [one.message.role for one in history] == ["user", "assistant"] * 2
    assert [len(contents) for contents in model.asked] == [1, 3]


@pytest.mark.parametrize("block", pages.blocks("google_adk"))
def test_the_pages_run(block: pages.Block, tmp_path: Path) -> None:
    """Each example prints what its page says."""
    pages.run(block, tmp_path)
