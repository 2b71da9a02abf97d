"""What every handle of one store shares: its ledger, and what is done before a write.

Here a message is checked, masked and counted, in this order, whichever verb is to write it.
Glue, no rule of its own. It must not know a verb or a session.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reasoning_store import checking, replies
from reasoning_store.blocks import Counts, Message
from reasoning_store.draft_keeper import DraftKeeper
from reasoning_store.egress.tokens import count_message
from reasoning_store.errors import UsageError
from reasoning_store.ingress.masking import Masker, masked
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import DraftRow, Entry
from reasoning_store.settings import from_environment
from reasoning_store.stored import drafted
from reasoning_store.tokenizers import Counter, counter
from reasoning_store.viewing import Views

_MADE: Final = 'rs.user("text"), or rs.normalize_response(body) for what a provider answered'


class Workings:
    """What every handle of one store shares."""

    def __init__(self, ledger: Ledger, masker: Masker | None, encoding: str) -> None:
        self.ledger = ledger
        self.masker = masker
        self.encoding = encoding
        self.draft_keeper = DraftKeeper(ledger, every=replies.PART_SECONDS)
        self.views = Views(ledger)

    def entry(
        self,
        message: Message,
        encoding: str,
        sent: Mapping[str, Any] | None = None,
        *,
        at: int | None = None,
    ) -> Entry:
        """Return a message ready to be written: masked first, then counted.

        ``at`` is its place among several.
        """
        place = "" if at is None else f"messages.{at}"
        if not isinstance(message, Message):
            held = isinstance(getattr(message, "message", None), Message)
            raise UsageError(
                f"{place and place + ': '}a message, not {checking.type_name(message)}",
                hint="its .message is one" if held else _MADE,
            )
        message = checking.checked(message, place and f"{place}.")
        safe = message if self.masker is None else masked(message, self.masker)
        return Entry(safe, self.counts(safe, encoding), sent)

    def resolve(self, draft: DraftRow) -> Entry | None:
        """Return what has arrived of a reply whose recorder is ended, if anything has."""
        # A reply that this process records has got more than what is written of it.
        rest = self.draft_keeper.rest(draft.id, len(draft.parts))
        draft = replace(draft, parts=(*draft.parts, *rest))
        message = drafted(draft, interrupted=True)
        if not message.blocks and message.usage is None:
            return None
        encoding = self.ledger.states(draft.session_key, draft.branch).encoding
        # Its parts were masked when they were written.
        return Entry(message, self.counts(message, encoding), draft.sent)

    def counts(self, message: Message, encoding: str) -> Counts:
        return count_message(message, self.counter(encoding))

    def counter(self, encoding: str) -> Counter:
        return counter(encoding)

    def environment(self) -> dict[str, Any]:
        """Return what the environment sets at this moment (BR-008)."""
        return from_environment(os.environ)
