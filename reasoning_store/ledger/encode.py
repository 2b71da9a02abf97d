"""Values to columns, pure: the columns of a message.

Done before any lock is taken, since it is what can be slow or can fail: JSON and digests.

Knows blocks, codec and the columns' forms (``tables`` describes them); runs no SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeGuard

from reasoning_store.conversation import codec, placeholders
from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.thinking_header import HIDDEN, READABLE, ThinkingHeader
from reasoning_store.conversation.validation import check_text
from reasoning_store.ledger import keys
from reasoning_store.ledger.keys import origin_number
from reasoning_store.ledger.message_columns import MessageParts, encode_columns
from reasoning_store.ledger.records import (
    NewMessage,
    ReasoningUsed,
)

BODY = ("text", "data", "sent")
THINKING = ("ordinal", "tokens", "source_field", "thought", "data", "is_hidden")
"""The columns in ``EncodedMessage``, in the order that they have there and in the tables."""
MOST_ANNOTATIONS = 16 * 1024
"""Bytes of JSON."""
MOST_OF_DRAFT = 14 * 1024
"""The same of a draft: its end adds times, and the reason of a stop."""
_NAME_LIMIT = 1000
"""Bytes of a name: an index does not take more."""


def fits_text_column(text: str) -> bool:
    """Whether a text column of every engine can hold this text: PostgreSQL refuses NUL."""
    return "\0" not in text


def check_indexed_name(value: str, what: str) -> str:
    """Return a name that a column can hold and that is short enough for an index."""
    text = keys.check_name(what, value)
    if len(text.encode()) > _NAME_LIMIT:
        raise _too_long(what)
    return text


def _too_long(what: str) -> InvalidCall:
    return InvalidCall(
        f"{what} is longer than {_NAME_LIMIT} bytes", hint="a digest of it is as good a name"
    )


def own_id(id: str) -> str:
    """Return an id that an application gives a message."""
    if not check_indexed_name(id, "a message id"):
        raise InvalidCall("a message id is not empty", hint="without id= the store makes one")
    return id


def repeat_of_id(id: str) -> str:
    """Return the column of the idempotency key of an application's own id."""
    return keys.key_digest(f"id:{id}")


def checked_key_digest(idempotency_key: str) -> str:
    """Return the column of an idempotency key; one that is too long is refused."""
    if len(check_text("an idempotency key", idempotency_key).encode()) > _NAME_LIMIT:
        raise _too_long("an idempotency key")
    return keys.key_digest(idempotency_key)


class EncodedMessage(NamedTuple):
    """An entry as columns. Made before any lock is taken."""

    entry: NewMessage
    columns: dict[str, Any]
    """Of ``messages``, but for the key and the position."""
    body: dict[str, Any]
    thinking: list[dict[str, Any]]
    used: ReasoningUsed
    origin: tuple[int, str] | None
    """Its number and JSON, to be interned."""


def encode_message(entry: NewMessage, *, id: str, created_at: int) -> EncodedMessage:
    """Return the columns of a message; ``id`` is of plain text."""
    message, counts = entry.message, entry.counts
    if not fits_text_column(id):
        raise InvalidCall("a message id holds a character that no text column can")
    visible, thoughts = _split_blocks(message.blocks)
    if len(counts.thinking) != len(thoughts):
        raise InvalidCall("counts: one number for each thinking block")
    headers = [
        ThinkingHeader.of(place, tokens, block)
        for (place, block), tokens in zip(thoughts, counts.thinking, strict=True)
    ]
    origin = None if message.origin is None else _origin_of(message.origin)
    number = None if origin is None else origin[0]
    body = _body(message, visible, entry.request_facts)
    rows = [_thinking_row(one, block) for one, (_, block) in zip(headers, thoughts, strict=True)]
    parts = MessageParts(
        id=id,
        created_at=created_at,
        message=message,
        counts=counts,
        headers=headers,
        origin=number,
        digest=digest(_digested_columns(message, origin, body, rows)),
        annotations=annotations_json(entry.annotations),
        is_recorded=entry.request_facts is not None,
    )
    columns = encode_columns(parts)
    used = reasoning_used(message.role, columns["reasoning"], counts.thinking)
    return EncodedMessage(entry, columns, body, rows, used, origin)


def annotations_json(
    annotations: Mapping[str, Any] | None, *, most: int = MOST_ANNOTATIONS
) -> str | None:
    """Return the column of what an application keeps with a message: absent while empty."""
    if not annotations:
        return None
    text = codec.dumps(dict(annotations))
    size = len(text.encode())
    if size > most:
        holder = "draft" if most == MOST_OF_DRAFT else "message"
        raise InvalidCall(
            f"annotations: {size} bytes of JSON, and a {holder} has at most {most}",
            hint="they are for small facts: keep the rest in a table of your own, by the id",
        )
    return text


def _split_blocks(blocks: Sequence[Block]) -> tuple[list[Block], list[tuple[int, ThinkingBlock]]]:
    """Return the visible blocks, and the thinking blocks with their places."""
    visible: list[Block] = []
    thoughts: list[tuple[int, ThinkingBlock]] = []
    for place, block in enumerate(blocks):
        if isinstance(block, ThinkingBlock):
            thoughts.append((place, block))
        else:
            visible.append(block)
    return visible, thoughts


def _digested_columns(
    message: Message,
    origin: tuple[int, str] | None,
    body: Mapping[str, Any],
    thinking: Sequence[Mapping[str, Any]],
) -> list[str | None]:
    """Return the columns of a message that its digest is made of, in one order."""
    data = body["data"]
    if data is not None and _has_given(message, data):
        data = in_order(data)
    told = [message.role, message.status, origin and origin[1], body["text"], data]
    for row in thinking:
        more = row["data"]
        if row["is_hidden"]:
            more = codec.dumps({**(codec.loads(more) if more else {}), "isHidden": True})
        more = more and in_order(more)
        told += [str(row["ordinal"]), row["source_field"], row["thought"], more]
    return told


def _has_given(message: Message, data: str) -> bool:
    """Whether an application's own JSON may be in the stored columns of a message."""
    usage = message.usage
    return (
        message.metadata is not None
        or (usage is not None and usage.raw is not None)
        or data.startswith(WITH_BLOCKS)
    )


WITH_BLOCKS = '{"blocks":'
"""How the JSON begins in which more than a text is visible."""


def may_free(message: Message, counts: Counts) -> bool:
    """Whether clearing the message's results can free as many tokens as the counts claim."""
    if not counts.clearable:
        return True
    return 0 < counts.clearable <= counts.visible and placeholders.has_results(message)


def reasoning_used(role: str, reported: int | None, counted: Sequence[int]) -> ReasoningUsed:
    """Return what one message adds to the reasoning that its session has used."""
    if role != "assistant":
        return ReasoningUsed()
    if reported is None:
        # Absent usage is not zero: what was counted stands in for it.
        return ReasoningUsed(counted=sum(counted), unreported=1)
    return ReasoningUsed(reported=reported)


def mark_batch(
    encoded: Sequence[EncodedMessage], idempotency_key: str | None
) -> list[EncodedMessage]:
    """Return a batch with its key, and the number of its rows, in the first row.

    Without a key of the batch each message with an id of the application's own has its own.
    """
    if idempotency_key is not None:
        return [_marked(encoded[0], idempotency_key, len(encoded)), *encoded[1:]]
    return [
        item if item.entry.id is None else _marked(item, repeat_of_id(item.entry.id), 1)
        for item in encoded
    ]


def _marked(item: EncodedMessage, key_text: str, batch: int) -> EncodedMessage:
    marks = {"idempotency_key": key_text, "batch": batch}
    return item._replace(columns={**item.columns, **marks})


def _origin_of(made: Origin) -> tuple[int, str]:
    """Return the number and the JSON of an origin; a response id is each message's own."""
    return _origin(made.provider, made.api, made.model, made.base_url)


@lru_cache(maxsize=256)
def _origin(
    provider: str | None, api: str | None, model: str | None, base_url: str | None
) -> tuple[int, str]:
    origin = Origin(provider=provider, api=api, model=model, base_url=base_url)
    text = codec.dumps(codec.to_json(origin))
    return origin_number(text), text


def _bare(block: Block) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and block.provider_metadata is None


def _body(
    message: Message, visible: Sequence[Block], request_facts: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the columns of ``bodies``.

    The first bare text is in ``text`` and null among the blocks; if nothing else is visible, the
    blocks are left out.
    """
    text: str | None = None
    blocks: list[Any] = []
    for block in visible:
        if text is None and _bare(block) and fits_text_column(block.text):
            text = block.text
            blocks.append(None)
        else:
            blocks.append(codec.block_to_json(block))
    data: dict[str, Any] = {}
    if blocks and blocks != [None]:
        data["blocks"] = blocks
    if message.usage is not None:
        # By place, which is read in half the time of names.
        told = message.usage
        places = [told.input, told.output, told.reasoning, told.cached, told.raw]
        data["usage"] = places if told.cache_write is None else [*places, told.cache_write]
    if message.finish_reason is not None:
        data["finishReason"] = message.finish_reason
    if message.metadata is not None:
        data["metadata"] = message.metadata
    if message.origin is not None and message.origin.response_id is not None:
        data["responseId"] = message.origin.response_id
    return {
        "text": text,
        "data": codec.dumps(data) if data else None,
        "sent": None if request_facts is None else codec.dumps(dict(request_facts)),
    }


def _thinking_row(known: ThinkingHeader, block: ThinkingBlock) -> dict[str, Any]:
    place, tokens, flags, source_field = known
    thought: str | None = block.thought
    data: dict[str, Any] = {}
    # Whether it is readable or hidden is in columns of their own.
    if flags & ~(READABLE | HIDDEN) or block.provider_metadata is not None:
        data = codec.block_to_json(block)
        for name in ("type", "thought", "sourceField", "isHidden"):
            data.pop(name, None)
    if not fits_text_column(block.thought):
        data["thought"], thought = thought, None
    if source_field is not None and not fits_text_column(source_field):
        data["sourceField"], source_field = source_field, None
    return {
        "ordinal": place,
        "tokens": tokens,
        "source_field": source_field,
        "thought": thought,
        "data": codec.dumps(data) if data else None,
        "is_hidden": int(block.is_hidden),
    }


def digest(columns: Iterable[str | None]) -> bytes:
    """Return 16 bytes of BLAKE2b over columns, each with its length before it.

    The columns hold all that is stored of a message, and equal messages have equal digests. Of what
    an application gave as JSON the order of keys does not count (``in_order``).
    """
    columns = list(columns)
    lengths = ",".join(["-" if text is None else str(len(text)) for text in columns])
    whole = f"{lengths};{''.join([text for text in columns if text is not None])}"
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def in_order(text: str) -> str:
    """Return stored JSON with its keys sorted, to be digested."""
    return _sorted(codec.loads(text))


_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
