"""One selection: a session's request is that of its history, whatever became of the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress.histories import settings, targets, thought, views
from tests.properties import examples

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "fork", "fork", "erase", "erase_reasoning", "edit"]),
        st.integers(0, 30),
        views,
    ),
    max_size=4,
)
"""What becomes of a conversation: a step, a place for it, and messages that come with it."""


def change(
    session: rs.Session, step: str, place: int, messages: Sequence[rs.Message]
) -> rs.Session:
    """Take a step at one of the session's positions; return the handle that goes on."""
    messages = [rs.user("next"), *messages]
    positions = [item.position for item in session.history()]
    if step == "append":
        session.append(messages)
        return session
    at = positions[place % len(positions)]
    if step == "fork":  # also inside of a turn
        session = session.fork(at=at)
        session.append(messages)
    elif step == "edit":
        asked = [item.position for item in session.history() if item.message.role == "user"]
        session.edit(asked[place % len(asked)], rs.user("another question"))
    else:
        session.erase(at, only="reasoning" if step == "erase_reasoning" else None)
    return session


def names_of(to: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("provider", "model", "api"), to, strict=True))


LAST_THOUGHT = rs.ReasoningSettings(include_in_context=True, strip_from_context="allButLast")


@given(views, STEPS, settings, targets)
@example([rs.user("q"), rs.assistant(thought("Hm."), "a")], [], LAST_THOUGHT, (None, None, None))
@examples(400)
def test_a_sessions_request_is_that_of_its_history(
    messages: list[rs.Message],
    steps: list[tuple[str, int, list[rs.Message]]],
    chosen: rs.ReasoningSettings,
    to: tuple[Any, ...],
) -> None:
    """Body, tokens, verdicts and warnings, after forks inside turns, edits and erasures.

    A session reads only the thoughts that can be sent, and counts without any: the function reads
    all of them.
    """
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append([*messages, rs.user("first")])
        for step, place, more in steps:
            session = change(session, step, place, more)
        history = session.history()
        own = session.build_request(settings=chosen, **names_of(to))
        usage = session.usage(settings=chosen, **names_of(to))
        choices = session.what_if(settings=chosen, **names_of(to))

    whole = rs.build_request(history, settings=chosen, **names_of(to))
    assert own.body == whole.body
    assert own.tokens == whole.tokens
    assert [one[1:] for one in own.verdicts] == [one[1:] for one in whole.verdicts]
    assert own.warnings == whole.warnings
    assert (usage.effective, usage.raw, usage.by_kind) == (
        whole.tokens.effective,
        whole.tokens.raw,
        whole.tokens.by_kind,
    )
    assert choices.current.tokens == whole.tokens


@given(views, views, settings, targets, st.integers(1, 20))
@examples(100)
def test_a_request_after_a_compaction_is_that_of_the_view(
    before: list[rs.Message],
    after: list[rs.Message],
    chosen: rs.ReasoningSettings,
    to: tuple[Any, ...],
    limit: int,
) -> None:
    """What a summary or a clearing leaves as it was is sent as it is without: its own turns."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append([rs.user("first"), *before, rs.user("second"), *after])
        plan = session.compression(limit=limit, settings=chosen, **names_of(to))
        untouched = session.build_request(settings=chosen, **names_of(to))
        if plan.action == "refuse":
            return
        made = session.compact(plan, summary="They spoke." if plan.to_summarize else None)
        own = session.build_request(settings=chosen, **names_of(to))
        usage = session.usage(settings=chosen, **names_of(to))
        if made is not None:
            session.undo(made.id)
        again = session.build_request(settings=chosen, **names_of(to))

    assert own.tokens.effective == usage.effective
    assert (again.body, again.tokens) == (untouched.body, untouched.tokens)
