"""State that all handles of one store share: ledger, masker, encoding, draft writer, contracts.

A message is checked, masked and counted here, in this order, before any verb writes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from reasoning_store.conversation import validation
from reasoning_store.conversation.blocks import Counts, Message, Origin, TextBlock
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.identity import Asked, ReplyNumbers, number_reply
from reasoning_store.conversation.notices import give_notice
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, NewMessage
from reasoning_store.recording.draft_writer import DraftWriter
from reasoning_store.stored_values import drafted
from reasoning_store.tokens import counter

if TYPE_CHECKING:
    from reasoning_store.ingress.masking import Masker
    from reasoning_store.wire.contract_tables import Contracts

_MADE: Final = 'rs.user("text"), or rs.normalize_response(body) for a provider\'s response'


class StoreState:
    """The state that all handles of one store share."""

    def __init__(
        self,
        ledger: Ledger,
        masker: Masker | None,
        encoding: str,
        draft_writer: DraftWriter,
        contracts: Contracts,
    ) -> None:
        self.ledger = ledger
        self.masker = masker
        self.encoding = encoding
        self.draft_writer = draft_writer
        self.contracts = contracts

    def prepare(
        self,
        message: Message,
        encoding: str,
        request_facts: Mapping[str, Any] | None = None,
        *,
        at: int | None = None,
        annotations: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
    ) -> NewMessage:
        """Return a message ready to be written: masked first, then counted.

        ``at`` is its place among several; its annotations are masked already. ``asked`` is what a
        client asked that it answers.
        """
        place = "" if at is None else f"messages.{at}"
        if not isinstance(message, Message):
            held = isinstance(getattr(message, "message", None), Message)
            raise InvalidCall(
                f"{place and place + ': '}a message, not {validation.type_name(message)}",
                hint="pass its .message" if held else _MADE,
            )
        message = validation.check_message(message, place and f"{place}.")
        if request_facts is None:  # a recorded reply is stored as it came, whatever it lacks
            validation.check_content(message, place and f"{place}.")
            _note_delimiters(message, place and f"{place}.", self.contracts)
        safe = message if self.masker is None else self._mask(message, self.masker)
        counts, echo = self.count(safe, encoding), _echo(asked, safe)
        return NewMessage(safe, counts, request_facts, annotations, echo=echo)

    def draft_message(self, draft: DraftRow) -> NewMessage | None:
        """Return what has arrived of a reply whose recorder is ended, if anything has."""
        # A reply that this process records has more parts than are written.
        rest = self.draft_writer.parts_after(draft.id, len(draft.parts))
        draft = replace(draft, parts=(*draft.parts, *rest))
        message, annotations = drafted(draft, interrupted=True)
        if not message.blocks and message.usage is None:
            return None
        encoding = self.ledger.branches.get(draft.session_key, draft.branch).encoding
        # Its parts were masked when they were written.
        counts, echo = self.count(message, encoding), _echo(draft.asked, message)
        return NewMessage(message, counts, draft.request_facts, annotations, echo=echo)

    @staticmethod
    def _mask(message: Message, masker: Masker) -> Message:
        from reasoning_store.ingress.masking import mask_message

        return mask_message(message, masker)

    def count(self, message: Message, encoding: str) -> Counts:
        from reasoning_store.egress.token_counts import count_message

        return count_message(message, counter(encoding))

    def environment(self) -> dict[str, Any]:
        """Return the settings in the environment at this moment (BR-008)."""
        from reasoning_store.conversation.settings import from_environment

        return from_environment(os.environ)


def _note_delimiters(message: Message, place: str, contracts: Contracts) -> None:
    """Warn of an answer whose text holds a delimiter, unless its host is known to quote it."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    if message.role != "assistant" or not any("<" in text for text in texts):
        return
    from reasoning_store.ingress.text_channel import has_delimiter
    from reasoning_store.wire.contract_lookup import find_contract

    said = message.origin or Origin()
    contract = find_contract(said.provider, said.model, said.api, said.base_url, contracts)
    if contract.reading.tags is True and any(map(has_delimiter, texts)):
        give_notice(
            f"{place}blocks: the text of an assistant message holds a delimiter of thinking, and is"
            " stored and sent with it (rs.normalize_response(text) separates the thinking)",
            stacklevel=2,
        )


def visible_text(text: str) -> str:
    """Return a reply's text without delimiters: a client is given it with them or without."""
    from reasoning_store.ingress.tags import split_reasoning

    return split_reasoning(text).visible if "<" in text else text


def _echo(asked: Asked | None, reply: Message) -> ReplyNumbers | None:
    return None if asked is None else number_reply(asked, reply, visible_text)
