"""Exports of tests, and a session with everything that an export can hold."""

from __future__ import annotations

from dataclasses import replace

from reasoning_store.conversation.blocks import Origin
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import SessionRow

from .compacting import compact
from .histories import add_part, answered, answering, calling, part, said


def every(ledger: Ledger, session: SessionRow | None = None) -> list[str]:
    """The lines of an export, of one session or of all."""
    return list(ledger.transfer.export_lines(None if session is None else session.key))


def rich(ledger: Ledger, owners: int = 2) -> list[SessionRow]:
    """A few sessions with a bit of everything."""
    made = []
    for n in range(owners):
        owner = f"o{n}\u00e9"
        ledger.profiles.set(owner, f"p{n}", {"x": n})
        for name in ("a", "b"):
            session = ledger.sessions.create(
                owner, name, encoding="o200k_base", title="t\u00e9", metadata={"m": [1.5]}
            )
            key = session.key
            ledger.sessions.use_profile(key, f"p{n}")
            reply = replace(answered(origin=Origin(model="m")), request_facts={"x": 1})
            ledger.messages.append(
                key, 1, [said(), reply, said(), calling("c"), answering("c"), said()]
            )
            ledger.messages.append(key, 1, [answered(), said()], idempotency_key="k")
            fork = ledger.branches.fork(key, 1, 5)
            ledger.messages.append(key, fork, [answered("x" * 3000, "\0")])
            ledger.branches.fork(key, fork, 2)
            compact(ledger, key, 1, 1, 2, said("first"))
            compact(ledger, key, 1, 1, 5, said("both"))
            ledger.erasure.erase_message(key, 1, 8)
            draft = ledger.drafts.begin(key, fork)
            add_part(ledger, draft, 1, part("so far"))
            made.append(session)
    ledger.sessions.archive(made[-1].key)
    return made
