"""One selection: a session's request is that of its history, whatever became of the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.placeholders import cleared
from tests.egress.histories import call, settings, targets, thought, views
from tests.properties import examples

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "fork", "fork", "compact", "erase", "erase_reasoning", "edit"]),
        st.integers(0, 30),
        views,
    ),
    max_size=4,
)
"""What becomes of a conversation: a step, a place for it, and messages that come with it."""

RESULT = rs.ToolResponseBlock(call_id="long", tool_name="look", result="a long result " * 9)
LOOKED_UP = (rs.user("Look it up."), rs.assistant(thought("Hm."), call("long")), rs.tool(RESULT))


def change(
    session: rs.Session, step: str, place: int, messages: Sequence[rs.Message]
) -> rs.Session:
    """Take a step at one of the session's positions; return the handle that goes on."""
    messages = [*LOOKED_UP, *messages]
    positions = [item.position for item in session.history()]
    if step == "append":
        session.append(messages)
        return session
    at = positions[place % len(positions)]
    if step == "fork":  # also inside of a turn
        session = session.fork(at=at)
        session.append(messages[place % 2 :])
    elif step == "compact":
        if place % 2:  # the turns so far are closed
            session.append(messages)
        plan = session.compression(limit=10 * place + 1, min_freed=1)
        if plan.action in ("clear", "summarize"):
            made = session.compact(plan, summary="They spoke." if plan.to_summarize else None)
            own = 0 if plan.to_summarize is None or made is None else made.tokens
            expected = plan.after - bool(plan.to_summarize) * plan.summary_tokens + own
            assert session.usage().effective == expected
    elif step == "edit":
        asked = [item.position for item in session.history() if item.message.role == "user"]
        if asked:
            session.edit(asked[place % len(asked)], rs.user("another question"))
    else:
        session.erase(at, only="reasoning" if step == "erase_reasoning" else None)
    return session


def messages_of(session: rs.Session) -> list[rs.Message]:
    """Return the history with what is in force: summaries for messages, placeholders for results.

    As a model gets to see it, put together from the public parts.
    """
    found = {item.position: item.message for item in session.history()}
    for one in session.compactions():
        for position in range(one.first, one.last + 1):
            if one.message is None and position in found:
                found[position] = cleared(found[position])
            elif one.message is not None:
                found.pop(position, None)
        if one.message is not None:
            found[one.first] = one.message
    return [found[position] for position in sorted(found)]


def names_of(to: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("provider", "model", "api"), to, strict=True))


LAST_THOUGHT = rs.ReasoningSettings(include_in_context=True, strip_from_context="allButLast")
UNKNOWN = (None, None, None)


@given(views, STEPS, settings, targets)
@example([rs.user("q"), rs.assistant(thought("Hm."), "a")], [], LAST_THOUGHT, UNKNOWN)
@example([], [("append", 0, []), ("compact", 19, []), ("fork", 9, [])], LAST_THOUGHT, UNKNOWN)
@examples(400)
def test_a_sessions_request_is_that_of_its_history(
    messages: list[rs.Message],
    steps: list[tuple[str, int, list[rs.Message]]],
    chosen: rs.ReasoningSettings,
    to: tuple[Any, ...],
) -> None:
    """Body, tokens, verdicts and warnings: forks inside turns, edits, erasures, compactions.

    A session reads only the thoughts that can be sent, and counts without any: the function reads
    all of them.
    """
    names = names_of(to)
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append([*messages, rs.user("first")])
        for step, place, more in steps:
            session = change(session, step, place, more)
        history: Any = messages_of(session) if session.compactions() else session.history()
        own = session.build_request(settings=chosen, **names)
        choices = session.what_if(settings=chosen, **names)
        counted = [(own, session.usage(settings=chosen, **names))]
        for branch in session.branches():
            other = session.branch(branch.id)
            usage = other.usage(settings=chosen, **names)
            counted.append((other.build_request(settings=chosen, **names), usage))

    whole = rs.build_request(history, settings=chosen, **names)
    assert own.body == whole.body
    assert own.tokens == whole.tokens
    assert [one[1:] for one in own.verdicts] == [one[1:] for one in whole.verdicts]
    if history and not isinstance(history[0], rs.Message):
        assert own.warnings == whole.warnings
    assert choices.current.tokens == whole.tokens
    for request, usage in counted:
        assert (usage.effective, usage.raw, usage.by_kind, usage.exactness) == (
            request.tokens.effective,
            request.tokens.raw,
            request.tokens.by_kind,
            request.tokens.exactness,
        )


def test_a_fork_within_the_open_turn_keeps_its_summary_in_force() -> None:
    """Its own part has no user message: the turn that it continues began on its parent."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        for number in range(6):
            session.append([rs.user(f"question {number} " * 9), rs.assistant("answer " * 20)])
        session.compact(session.compression(limit=200), summary="so far")
        fork = session.fork(at=12)
        fork.append(rs.assistant("another answer"))

        assert [(one.first, one.last) for one in fork.compactions()] == [
            (one.first, one.last) for one in session.compactions()
        ]
        assert fork.usage().effective == fork.build_request().tokens.effective
        assert fork.usage().effective < session.usage().effective


@given(views, views, settings, targets, st.integers(1, 20))
@examples(100)
def test_a_request_after_an_undo_is_that_of_before(
    before: list[rs.Message],
    after: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[Any, ...],
    limit: int,
) -> None:
    """A compaction changes no message: undone, nothing is left of it."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append([rs.user("first"), *before, rs.user("second"), *after])
        untouched = session.build_request(settings=chosen, **names_of(to))
        plan = session.compression(limit=limit, settings=chosen, **names_of(to))
        if plan.action == "refuse":
            return
        made = session.compact(plan, summary="They spoke." if plan.to_summarize else None)
        if made is not None:
            session.undo(made.id)
        again = session.build_request(settings=chosen, **names_of(to))

    assert (again.body, again.tokens) == (untouched.body, untouched.tokens)
