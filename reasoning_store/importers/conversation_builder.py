"""A conversation that is being read: its messages, their keys, and the counts of its report.

Theory. A message's key is a hash over the conversation's id and the source of every message up to
it. So if a store has a key, it has all messages before it too: a second import finds every key
stored, and a file that has grown has new keys only at its end. The key is made from the source, not
from the message: a later version that reads something better does not write the same conversation
again.

A reply is read by ingress. A tool response without an id is for the first call that has none.

This module knows messages and the forms of parts; it must not know formats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from reasoning_store import Block, InvalidCall, Message, tool
from reasoning_store.formats import (
    CallLinks,
    Conversation,
    Item,
    RequestMessage,
    SourceBranch,
    message_to_json,
    read_blocks,
    read_message,
    split_messages,
    tool_response,
)
from reasoning_store.importers.documents import MEND, refuse
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import AnsweredBy, is_thought
from reasoning_store.importers.source_messages import (
    OF_MESSAGE,
    SourceConversation,
    SourceMessage,
    other_fields,
    stated_time,
    states_time,
    text_field,
)
from reasoning_store.importers.values import count_message
from reasoning_store.results import Report, Role, Skipped

EMPTY: Final = "it has no content"
IN_PARTS: Final = 'it has "parts" in the place of "content", which cannot be imported yet'
UNKNOWN_ROLE: Final = "its role is not one of the format's"
UNREAD_TIME: Final = "its time is neither ISO 8601 nor seconds or milliseconds since 1970"
_LONGEST_ID: Final = 500
"""In bytes; of a longer id the hash is taken."""

_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def digest_values(*parts: Any) -> str:
    """Return the hash of JSON values, each apart from the next, as 32 hexadecimal digits."""
    text = _canonical(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The end of a line at some moment, where a branch can go off later."""

    key: str
    next: int
    at: datetime | None
    links: CallLinks


class ConversationBuilder:
    """A conversation, as far as it was read. Its next message is at ``key`` and ``next``."""

    def __init__(
        self,
        id: str,
        who: AnsweredBy,
        *,
        title: str | None = None,
        created_at: datetime | None = None,
        model: str | None = None,
        first: int = 1,
        key: str = "",
        archived: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        # A store takes an id of this length.
        self.id = id if len(json.dumps(id)) <= _LONGEST_ID else digest_values(id)
        self.key = key
        self.title = title
        self.provider: str | None = None
        """The provider that the history names."""
        self.model = model
        """The model that answers where a message names none."""
        self.at = created_at
        """The time of the last message that has one."""
        self.who = who
        self._archived = archived
        self._metadata = metadata or {}
        self._created_at = created_at
        self._lines = [SourceBranch(after="", first=first, items=[])]
        self._report = Report()
        self._links = CallLinks()

    @property
    def next(self) -> int:
        """The place of the message that comes next, from 1."""
        return self._lines[-1].first + len(self._lines[-1].items)

    @property
    def fork_point(self) -> ForkPoint:
        """The point from which a branch after the last message starts."""
        return ForkPoint(self.key, self.next, self.at, self._links.copy())

    def start_branch(self, point: ForkPoint) -> None:
        """Go on after an earlier message: what is added next is a branch."""
        if not self._lines[-1].items:
            self._lines.pop()
        self.key, self.at = point.key, point.at
        self._links = point.links.copy()
        self._lines.append(SourceBranch(after=point.key, first=point.next, items=[]))

    def conversation(self, *, current: str | None = None) -> Conversation:
        """Return what was read; ``current`` is the key of the last message that is shown."""
        first, *branches = self._lines
        return Conversation(
            id=self.id,
            title=self.title,
            created_at=self._created_at,
            items=first.items,
            report=self._report,
            first=first.first,
            branches=[branch for branch in branches if branch.items],
            current=current,
            archived=self._archived,
            metadata=self._metadata,
        )

    # Messages

    def skip(self, place: str, reason: str) -> None:
        """Note that a part of the source gave no message."""
        self._report += Report(skipped=(Skipped(place=place, reason=reason),))

    def note_unread_time(self, place: str) -> None:
        """Note that a time is stated and cannot be read."""
        self._report += Report(unread_times=(Skipped(place=place, reason=UNREAD_TIME),))

    def add(
        self,
        message: Message,
        placed: SourceMessage,
        *,
        source: Any = None,
        texts: Sequence[str] | None = None,
        thoughts: int = 0,
        unread: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Add a message and return it, with the ``unread`` fields of its source in its metadata.

        ``source`` is what its key is made of, in the place of the value. The source of a reply
        had these ``texts`` and native ``thoughts``; other messages are stored unchanged. An empty
        message is skipped.
        """
        if not (message.blocks or (message.metadata or {}).get("unknownChunks")):
            parted = isinstance(placed.value.get("parts"), list)
            self.skip(placed.place, IN_PARTS if parted else EMPTY)
            return None
        notes = {**(message.metadata or {}), **({"source": dict(unread)} if unread else {})}
        blocks = self._links.link(message.blocks, self.id, self.next)
        message = replace(message, metadata=notes or None, blocks=tuple(blocks))
        try:
            json.dumps(message_to_json(message))
        except (TypeError, ValueError, RecursionError):
            what = f"{placed.place}: a value that JSON cannot hold"
            raise InvalidCall(what, hint=MEND) from None
        at = stated_time(placed.value)
        if at is None and states_time(placed.value):
            self.note_unread_time(placed.place)
        self.at = at or self.at
        source = placed.value if source is None else source
        self.key = digest_values(self.id, self.next, self.key, source)
        self._lines[-1].items.append(
            Item(message=message, key=self.key, created_at=at, id=placed.id)
        )
        self._report += count_message(message, texts=texts, thoughts=thoughts)
        return message

    def add_plain(
        self,
        role: Role,
        placed: SourceMessage,
        *,
        source: Any = None,
        unread: Mapping[str, Any] | None = None,
    ) -> Message | None:
        """Add a message of a user, or a system prompt, unchanged."""
        made = Message(role=role, blocks=tuple(self.read_content(placed)))
        return self.add(made, placed, source=source, unread=unread)

    def add_system_prompts(self, one: SourceConversation, *names: str) -> None:
        """Add the system prompts that the conversation has under these names."""
        for name in names:
            if said := one.about.get(name):
                value = {"role": "system", "content": said}
                place = f"line {one.line}: {name}"
                self.add_plain("system", SourceMessage(place=place, line=one.line, value=value))

    def read_content(self, placed: SourceMessage) -> list[Block]:
        """Return the blocks of a message's content, or refuse another value."""
        check_content(placed)
        return read_blocks(placed.value.get("content"))

    # Replies

    def add_request(
        self,
        placed: Sequence[SourceMessage],
        api: str | None,
        *,
        source: Any = None,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the messages of a request of a protocol; a reply of it reported ``usage``."""
        values = [other_fields(one.value, OF_MESSAGE) for one in placed]
        who = self.who
        for one in split_messages(values, api=api, provider=who.provider, model=who.model):
            if one.role is None:
                self.skip(placed[one.first].place, UNKNOWN_ROLE)
            else:
                self._add_request_message(one, placed[one.first : one.last + 1], source, usage)

    def _add_request_message(
        self,
        one: RequestMessage,
        placed: Sequence[SourceMessage],
        source: Any,
        usage: Mapping[str, Any] | None,
    ) -> None:
        if one.role != "tool":
            check_content(placed[0])
        model = self._model_of(placed[0].value)
        named = self.who.ingress_options(provider=self.provider, model=model)
        is_reply = one.role == "assistant"
        self.add(
            read_message(one, usage=usage, **named),
            replace(placed[0], id=next((part.id for part in placed if part.id), None)),
            source=[part.value for part in placed] if source is None else source,
            texts=one.texts() if is_reply else None,
            thoughts=one.count_thoughts() if is_reply else 0,
        )

    def _model_of(self, about: Mapping[str, Any]) -> str | None:
        return text_field(about, "model") or self.model

    def add_kept_reply(
        self,
        reply: KeptReply,
        placed: SourceMessage,
        *,
        source: Any,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a reply that was kept as parts; its others are in its metadata."""
        named = replace(
            reply,
            provider=reply.provider or self.provider,
            model=reply.model or self._model_of(placed.value),
        )
        parts = reply.parts
        self.add(
            named.message(self.who),
            placed,
            source=source,
            texts=[part["text"] for part in parts if part["type"] == "text" and part["text"]],
            thoughts=sum(map(is_thought, parts)),
            unread={**(unread or {}), **({"parts": reply.others} if reply.others else {})},
        )

    def add_steps(
        self,
        reply: KeptReply,
        placed: SourceMessage,
        *,
        source: Any,
        unread: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the replies that parts make, and between them the answers of tools.

        All but the parts is of the last reply.
        """
        runs = [
            list(run) for _, run in groupby(reply.parts, lambda part: part["type"] == "tool_result")
        ]
        for number, run in enumerate(runs or [[]]):
            key = [source, number]
            if run and run[0]["type"] == "tool_result":
                answers = [
                    tool_response(
                        part["tool_call_id"],
                        part["output"],
                        name=part["name"],
                        is_error=part["is_error"],
                    )
                    for part in run
                ]
                self.add(tool(*answers), placed, source=key)
            else:
                is_last = number + 2 > len(runs)
                step = replace(reply, parts=run) if is_last else KeptReply(parts=run)
                self.add_kept_reply(step, placed, source=key, unread=unread if is_last else None)


def check_content(placed: SourceMessage) -> None:
    """Refuse a message whose content is neither a text nor parts."""
    if isinstance(placed.value.get("content"), str | list | None):
        return
    place = placed.place.removeprefix(f"line {placed.line}").removeprefix(": ")
    where = f"{place}: " if place else ""
    refuse(placed.line, f"{where}content is neither text nor a list of parts")
