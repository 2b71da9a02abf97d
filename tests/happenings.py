"""What happens to conversations, one thing after another, and under which settings."""

from __future__ import annotations

import itertools

import reasoning_store as rs
from reasoning_store.conversation.blocks import Role
from tests.egress.targets import Target
from tests.ledger.compacting import clear

POLICIES = [
    {
        "reasoning.includeInContext": include,
        "reasoning.stripFromContext": strip,
        "reasoning.floor": floor,
    }
    for include, strip, floor in itertools.product(
        (False, True), ("all", "allButLast", "none", "priorTurns"), ("provider", "off")
    )
]
STEPS = [
    *("user", "reply", "loop", "long loop", "open call", "interrupted", "thought only"),
    *("fork", "edit", "pop", "compact", "clear", "undo", "erase", "erase thoughts"),
]
LONG = "found " * 12


def cleared_upto(session: rs.Session) -> int:
    """The position up to which tool results are cleared."""
    return max((c.last for c in session.compactions() if c.kind == "clearing"), default=0)


def step(session: rs.Session, kind: str, at: int, target: Target, name: str) -> rs.Session:
    """Do one thing that happens to conversations; return the handle that goes on."""
    head = session.history(limit=1)[-1].position if session.history(limit=1) else 0
    at = 1 + at % head if head else 0
    match kind:
        case "user":
            session.append(rs.user(f"And {name}?"))
        case "reply":
            session.append(target.reply(name, text="So be it.", thought="Hm. Well."))
        case "loop" | "long loop" | "open call":
            message = target.reply(name, text="Let me see.", thought="A tool?", calls=1)
            session.append(message)
            result = {"loop": "It.", "long loop": f"canary-{name} {LONG}"}.get(kind)
            if result is not None:
                session.append(
                    [
                        rs.tool(rs.ToolResponseBlock(call_id=c.id, tool_name=c.name, result=result))
                        for c in message.tool_calls
                    ]
                )
        case "interrupted":
            half = target.reply(name, text="Half a", thought="It may")
            session.append(rs.assistant(*half.blocks, status="interrupted", origin=half.origin))
        case "thought only":
            session.append(target.reply(name, thought="Only this."))
        case "fork" if head:
            return session.fork(at=at)
        case "edit" if head:
            session.edit(at, _instead_of(session.get(at).message.role, name, target))
        case "pop" if any(item.message.starts_turn for item in session.history()):
            session.pop_turn()
        case "compact":
            plan = session.compression(limit=12, threshold=0.5, **target.to)
            if plan.steps:
                session.compact(plan, summary="They talked." if plan.to_summarize else None)
        case "clear":
            ledger, here = session._state.ledger, (session._row.key, session.branch_id)
            closed = (ledger.branches.turn_start(*here) or 1) - 1
            done = cleared_upto(session)
            if done < closed:
                clear(ledger, *here, done + 1 + at % (closed - done))
        case "undo" if session.compactions():
            session.undo(session.compactions()[-1].id)
        case "erase" if head:
            session.erase(at)
        case "erase thoughts" if head:
            session.erase(at, only="reasoning")
    return session


def _instead_of(role: Role, name: str, target: Target) -> rs.Message:
    """Return a message that may replace one of this role."""
    match role:
        case "assistant":
            return target.reply(name, text="Rather so.", thought="Hm. Or so?")
        case "tool":
            return rs.tool(rs.ToolResponseBlock(call_id=name, tool_name="look", result="Rather."))
        case _:
            return rs.user(f"Rather {name}?")
