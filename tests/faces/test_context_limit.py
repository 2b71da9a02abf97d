"""A conversation that outgrows its limit again and again: a real store, plans that are applied.

The reasoning budget is here, too, where two processes ask for it: what is reported once is reported
once to all of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import reasoning_store as rs

LIMIT, RESERVE = 3_000, 300
TURNS = 90
TO: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-v4"}
KEPT = {"reasoning.includeInContext": True}
TARGETS = [TO, {"provider": "anthropic", "model": "claude-opus-5"}]


def a_turn(number: int, chance: Random) -> list[rs.Message]:
    """Return a question, perhaps a loop of tools, and an answer, of many lengths."""

    def thought() -> rs.ThinkingBlock:
        words = "think " * chance.randint(1, 70)
        return rs.ThinkingBlock(thought=words, source_field="reasoning_content")

    out = [rs.user(f"Question {number}? " + "please " * chance.randint(1, 60))]
    for step in range(chance.choice([0, 0, 1, 3])):
        call = rs.ToolCallBlock(id=f"call_{number}_{step}", name="f", parameters={"a": step})
        result = "found " * chance.randint(1, 60)
        answer = rs.ToolResponseBlock(call_id=call.id, tool_name="f", result=result)
        out += [rs.assistant(thought(), call), rs.tool(answer)]
    return [*out, rs.assistant(thought(), "answer " * chance.randint(1, 60))]


def lies_on_turns(session: rs.Session, first: int, last: int) -> bool:
    """Whether a range begins and ends where turns do."""
    return session.get(first).message.starts_turn and session.get(last + 1).message.starts_turn


@pytest.mark.parametrize("to", TARGETS, ids=lambda to: to["provider"])
@pytest.mark.parametrize("settings", [{}, KEPT], ids=["withheld", "kept"])
def test_a_conversation_that_is_compressed_as_planned_always_fits(
    url: str, to: dict[str, Any], settings: dict[str, Any]
) -> None:
    """What a plan said is what the request counts, no plan follows another, no row is lost."""
    chance, said = Random(7), []
    applied: list[str] = []
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        for key, value in settings.items():
            session.settings.set(key, value)
        for number in range(TURNS):
            said += a_turn(number, chance)
            session.append(said[len(session.history()) :])
            plan = session.compression(limit=LIMIT, reserve=RESERVE, **to)
            assert plan.effective == session.usage(**to).effective
            if not plan.steps:
                assert plan.action in ("none", "warn")
                continue
            at = plan.to_summarize
            assert at is None or lies_on_turns(session, at.first, at.last)
            session.compact(
                plan, summary=None if at is None else "summary " * chance.randint(1, 200)
            )
            applied.append(plan.action)

            counted = session.usage(**to).effective
            assert counted == session.build_request(**to).tokens.effective
            assert counted <= plan.after <= LIMIT - RESERVE
            assert session.compression(limit=LIMIT, reserve=RESERVE, **to).steps == ()

        assert 3 < len(applied) < TURNS / 3
        assert {"clear", "summarize"} <= set(applied)
        assert [stored.message for stored in session.history()] == said
        assert store.verify().problems == ()
        while made := session.compactions():
            session.undo(made[-1].id)
        session.settings.unset("reasoning.stripFromContext")
        whole = rs.build_request(said, settings=settings, **to)
        assert session.build_request(**to).body == whole.body


ASK = """
import sys
import reasoning_store as rs

with rs.Store(sys.argv[1]) as store:
    for line in sys.stdin:
        found = store.session("chat").budget(limit=int(line))
        print(found.state, *found.crossed, flush=True)
"""


def test_a_mark_of_a_budget_is_reported_to_one_of_two_processes(tmp_path: Path) -> None:
    """Whichever asks first; a limit that is raised is another mark."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        session.append(rs.assistant("a", usage=rs.Usage(output=90, reasoning=85)))

        def elsewhere(*limits: int) -> list[str]:
            asked = "".join(f"{limit}\n" for limit in limits)
            ran = subprocess.run(
                [sys.executable, "-c", ASK, url],
                input=asked,
                capture_output=True,
                text=True,
                check=True,
            )
            return ran.stdout.splitlines()

        assert session.budget(limit=100).crossed == ("warning",)
        assert elsewhere(100, 80, 80) == ["warning", "exceeded exceeded", "exceeded"]
        assert session.budget(limit=80).crossed == ()
        assert session.budget(limit=84).crossed == ("exceeded",)
        assert elsewhere(84, 1_000) == ["exceeded", "ok"]
