"""A process that appends turns to one session: writer.py URL OWNER ID NAME TURNS.

It prints the positions that it was given, so that whoever started it can compare.
"""

from __future__ import annotations

import sys

from reasoning_store.blocks import Counts, Origin, TextBlock, ThinkingBlock, assistant, user
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Entry


def main(url: str, owner: str, session_id: str, name: str, turns: str) -> None:
    with Ledger.open(url) as ledger:
        session = ledger.get_session(owner, session_id)
        for turn in range(int(turns)):
            reply = assistant(
                ThinkingBlock(thought="x" * 500, signature=name, source_field="thinking"),
                TextBlock(text=f"{name} {turn}"),
                origin=Origin(provider=name),
            )
            rows = ledger.append(
                session.key,
                1,
                [
                    Entry(user(f"{name} {turn}"), Counts(visible=3)),
                    Entry(reply, Counts(visible=5, thinking=(7,))),
                ],
                idempotency_key=f"{name} {turn}",
            )
            print(*(row.position for row in rows), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
