"""Conversations with thinking, some of them recorded with their requests."""

from __future__ import annotations

from typing import Any

import reasoning_store as rs

DEEPSEEK: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-chat"}
KEEP_ALL = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"}


def thinking(text: str, **about: Any) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field="reasoning_content", **about)


def talk(session: rs.Session) -> None:
    origin = rs.Origin(provider="deepseek", api="openai.chat", model="deepseek-chat")
    session.append(
        [
            rs.user("Is 91 prime?"),
            rs.assistant(
                thinking("7 * 13", signature="c2ln"),
                rs.TextBlock(text="No."),
                origin=origin,
                usage=rs.Usage(input=10, output=20, reasoning=15),
            ),
        ]
    )


def turn(session: rs.Session, number: int, words: int = 100) -> None:
    session.append(
        [
            rs.user(f"Question {number}? " + "please " * words),
            rs.assistant(thinking("hm " * words), rs.TextBlock(text="yes " * words)),
        ]
    )


def events(text: str, thought: str) -> list[dict[str, Any]]:
    deltas = [{"reasoning_content": thought}, {"content": text}]
    return [
        *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]


def answered(session: rs.Session, text: str = "Yes.", **asked: Any) -> rs.Request:
    """Build a request, record an answer to it, and return the request."""
    request = session.build_request(**asked)
    with session.record(events(text, "Let me think."), request=request) as reply:
        for _ in reply:
            pass
    return request


def talked(session: rs.Session) -> rs.Request:
    """Three turns that were recorded, and a fourth after a summary of the first two."""
    for number in range(3):
        session.append(rs.user(f"Question {number}? " + "please " * 20))
        answered(session, **DEEPSEEK)
    plan = session.compression(limit=100, threshold=0.1, reserve=1, **DEEPSEEK)
    assert plan.to_summarize is not None
    session.compact(plan, summary="They talked.")
    session.append(rs.user("And now?"))
    return answered(session, **DEEPSEEK)
