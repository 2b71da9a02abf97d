"""Turns as a target makes them: questions, loops of calls, and how they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import reasoning_store as rs
from reasoning_store.testing import Record, response
from tests.egress.targets import Target

OFF = {"reasoning.floor": "off"}
FORETOLD = {"floor_off", "floor_unmet"}
TOOLS = [
    {
        "name": "look_up",
        "description": "Look a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    }
]


def answers(reply: rs.Message, result: str = "Found.") -> Iterator[rs.Message]:
    """Yield what the tools answered, one message a call."""
    for call in reply.tool_calls:
        yield rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=result))


def a_turn(
    target: Target, name: str, *, steps: int, ends: bool = True, thinks: bool = True
) -> list[rs.Message]:
    """Return one turn: a question, a loop of so many steps, and perhaps an answer."""
    out = [rs.user(f"Question {name}?")]
    for step in range(steps):
        reply = target.reply(
            f"{name}_{step}",
            thought=f"Step {step} of {name}." if thinks else "",
            text="One moment." if step % 3 == 0 else "",
            calls=1 + step % 2,
        )
        out += [reply, *answers(reply)]
    if ends:
        out.append(target.reply(f"{name}_end", thought=f"Done with {name}.", text=f"{name}."))
    return out


def shapes(target: Target) -> Iterator[tuple[str, list[rs.Message]]]:
    """Yield histories by how their turns ended."""
    closed = a_turn(target, "a", steps=2)
    yield "nothing was called", [*a_turn(target, "a", steps=0), rs.user("And?")]
    yield "an open loop", a_turn(target, "only", steps=2, ends=False)
    yield "a closed loop", [*closed, rs.user("And?")]
    yield "an answer after a closed loop", [*closed, *a_turn(target, "b", steps=0), rs.user("Go.")]
    yield "an open loop after a closed one", [*closed, *a_turn(target, "b", steps=1, ends=False)]


def remembered(messages: Sequence[rs.Message], target: Target) -> Record | None:
    """Return what a host of Responses remembers: which of its items reasoning led to."""
    if target.api != "openai.responses":
        return None
    record = Record()
    for message in messages:
        if message.origin is not None and message.origin.provider == target.provider:
            record.answered({}, response(message, **target.to)["output"])
    return record
