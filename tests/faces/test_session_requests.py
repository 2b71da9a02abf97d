"""What a session sends: one number three ways, what-if, and a context that is named once."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress.targets import TARGETS, Target
from tests.happenings import POLICIES, STEPS, cleared_upto, step
from tests.properties import examples

from .answering import DEEPSEEK, KEEP_ALL, events, turn


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return store.session("chat", create=True)


# One number, three ways


def results_that_go_out(session: rs.Session) -> set[str]:
    """Which of the long results stand in a view, by what is unique in each."""
    gone = [c for c in session.compactions() if c.kind == "summary"]
    return {
        block.result.split()[0]
        for item in session.history()
        for block in item.message.blocks
        if isinstance(block, rs.ToolResponseBlock) and str(block.result).startswith("canary-")
        if item.position > cleared_upto(session)
        if not any(one.first <= item.position <= one.last for one in gone)
    }


@examples(60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.sampled_from(TARGETS)),
        max_size=14,
    ),
    policy=st.sampled_from(POLICIES),
    asked=st.sampled_from(TARGETS),
    along=st.booleans(),
)
def test_usage_is_the_count_of_the_request_whatever_happened(
    steps: list[tuple[str, int, Target]], policy: dict[str, Any], asked: Target, along: bool
) -> None:
    """BR-004: from carried state alone, over every history, policy and target."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        settings = {**asked.asks, **policy}
        for number, (kind, at, target) in enumerate(steps):
            session = step(session, kind, at, target, f"n{number}")
            if along:
                # What was read for one request is what the next goes on from.
                session.build_request(settings=settings, **asked.to)

        usage = session.usage(settings=settings, **asked.to, system="Be brief.")
        request = session.build_request(settings=settings, **asked.to, system="Be brief.")

        assert usage.effective == request.tokens.effective
        assert usage.raw == request.tokens.raw
        assert usage.fixed == request.tokens.fixed
        withheld = sum(verdict.tokens for verdict in request.verdicts if not verdict.kept)
        assert request.tokens.raw - request.tokens.effective == withheld
        assert store.verify().problems == ()
        said = set(re.findall(r"canary-n\d+", json.dumps(request.body)))
        assert said <= results_that_go_out(session)
        if not session.compactions():
            of_messages = rs.build_request(
                [item.message for item in session.history()],
                settings=settings,
                **asked.to,
                system="Be brief.",
            )
            assert request.body == of_messages.body


def test_usage_prints_as_effective_of_limit(session: rs.Session) -> None:
    """``123000/212000``."""
    turn(session, 1)

    usage = session.usage(limit=212_000)

    assert str(usage) == f"{usage.effective}/212000"


# What-if


def test_what_if_says_what_each_choice_would_send(session: rs.Session) -> None:
    """Each row is the request that those settings build."""
    turn(session, 1)
    turn(session, 2)

    for row in session.what_if(settings=KEEP_ALL, **DEEPSEEK).rows:
        built = session.build_request(
            settings={
                "reasoning.includeInContext": row.include_in_context,
                "reasoning.stripFromContext": row.strip_from_context,
            },
            **DEEPSEEK,
        )
        assert row.tokens == built.tokens


# A context: named once, asked often

NAMED: dict[str, Any] = {**DEEPSEEK, "system": "Be brief.", "settings": KEEP_ALL}


def test_a_context_gives_what_the_session_gives_with_the_names_in_the_call(
    session: rs.Session,
) -> None:
    """Its request, its usage, its alternatives and its plan."""
    for number in range(6):
        turn(session, number)
    chat = session.context(**NAMED, limit=1_000)

    assert chat.request({"stream": True}).body == (
        session.build_request(**NAMED, extra={"stream": True}).body
    )
    assert chat.usage() == session.usage(**NAMED, limit=1_000)
    assert chat.usage(at=4) == session.usage(**NAMED, limit=1_000, at=4)
    assert str(chat.what_if()) == str(session.what_if(**NAMED))
    assert chat.compression(threshold=0.5) == (
        session.compression(limit=1_000, threshold=0.5, **NAMED)
    )


def test_a_context_follows_its_session_to_another_branch(session: rs.Session) -> None:
    """An edit moves the handle, and the next request is of the new branch."""
    chat = session.context(**DEEPSEEK)
    session.append([rs.user("Is 91 prime?"), rs.assistant("No.")])
    before = chat.request()

    session.edit(1, rs.user("Is 97 prime?"))

    assert [len(before.body["messages"]), len(chat.request().body["messages"])] == [2, 1]


@pytest.mark.parametrize("asked", [True, False], ids=["its request", "no request"])
def test_a_context_records_the_reply_of_its_model(session: rs.Session, asked: bool) -> None:
    """With what is known of the request that it built last, if it built one."""
    chat = session.context(**NAMED)
    session.append(rs.user("Is 91 prime?"))
    if asked:
        chat.request()
    with chat.record(events("No.", "7 * 13."), idempotency_key="k") as reply:
        list(reply)

    assert reply.stored is not None
    assert reply.stored.message.origin is not None
    assert reply.stored.message.origin.model == "deepseek-chat"
    assert session.build_request(**NAMED).cache_break == (2 if asked else None)
    with pytest.raises(rs.Conflict):
        list(chat.record(events("No.", "7 * 13."), idempotency_key="k"))


def test_a_context_without_a_limit_plans_nothing(session: rs.Session) -> None:
    """It is refused with the name to give; a limit that is none is refused where it is given."""
    with pytest.raises(rs.InvalidCall, match="needs the limit") as refused:
        session.context(**DEEPSEEK).compression()
    assert "limit=" in str(refused.value.hint)
    with pytest.raises(rs.InvalidCall, match="limit: 1 or more, not 0"):
        session.context(limit=0)


def test_a_context_is_asked_and_recorded_awaited(url: str) -> None:
    """The same verbs, with the same answers."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            session = await opened.session("chat", create=True)
            await session.append(rs.user("Is 91 prime?"))
            chat = session.context(**NAMED, limit=1_000)
            request = await chat.request()
            assert request.body == (await session.build_request(**NAMED)).body
            async with chat.record(events("No.", "7 * 13.")) as reply:
                assert [chunk async for chunk in reply]
            assert await chat.usage() == await session.usage(**NAMED, limit=1_000)
            assert (await chat.compression()).action == "none"
            assert (await chat.what_if()).current.legal

    asyncio.run(work())
