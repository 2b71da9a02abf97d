"""A process that records a reply: python -m tests.ledger.recorder URL OWNER ID LEASE PARTS PAUSE.

It prints each part that it was told is stored, so that the one who kills it can compare; at
its end it prints what became of the reply. Told that the reply was ended by another,
it goes on for a few parts more.
"""

from __future__ import annotations

import sys
import time

from reasoning_store.conversation.errors import Conflict
from reasoning_store.ledger import stored_drafts
from reasoning_store.ledger.ledger import Ledger

from .histories import add_part, complete, part, resolved


def main(url: str, owner: str, session_id: str, lease: str, parts: str, pause: str) -> None:
    stored_drafts.LEASE = float(lease)
    with Ledger.open(url) as ledger:
        session = ledger.sessions.get(owner, session_id)
        draft = ledger.drafts.begin(session.key, 1, draft_message=resolved)
        print("began", draft.id, flush=True)
        n, last, lost = 0, int(parts), 0
        while n < last:
            n += 1
            mine = add_part(ledger, draft, n, part(f"{n} "))
            print("kept" if mine else "lost", n, flush=True)
            if not mine:
                lost = lost or n
                last = min(last, lost + 5)
            time.sleep(float(pause))
        try:
            (row,) = ledger.drafts.finish(draft, [complete(n)])
        except Conflict as conflict:
            print("conflict", *[stored.position for stored in conflict.stored], flush=True)
        else:
            print("stored", row.position, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
