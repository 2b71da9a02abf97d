"""The echo of a message: a number for all that a client sends back of it.

A client keeps the role, the text and the calls of a reply, and loses its thinking. Messages that
look equal to a client have one echo, so an echo finds the stored message that a client sends back.
Space around a text, the order of keys in arguments, and the pieces of a text are not part of it:
clients change them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.digests import digest_texts
from reasoning_store.conversation.errors import InvalidCall

_63_BITS = (1 << 63) - 1


def message_echo(message: Message) -> int | None:
    """Return the echo of a message; an erased one has none."""
    if message.status == "erased":
        return None
    text: list[str] = []
    parts: list[str] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            text.append(block.text)
        elif isinstance(block, ToolCallBlock):
            parts += ["call", block.name, _arguments(block)]
        elif isinstance(block, ToolResponseBlock):
            parts += ["response", block.call_id, codec.result_text(block).strip()]
    found = digest_texts([message.role, "".join(text).strip(), *parts], size=8)
    return int.from_bytes(found, "big") & _63_BITS


def _arguments(call: ToolCallBlock) -> str:
    """Return the arguments of a call in one form, however they are spelt."""
    if isinstance(call.parameters, Mapping):
        return _sorted_json(call.parameters)
    try:
        return _sorted_json(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError, InvalidCall):
        return call.arguments or ""


def _sorted_json(value: Any) -> str:
    text = codec.dumps(value)  # keys that are numbers are strings from here on
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def align_echoes(sent: Sequence[int | None], stored: Sequence[int | None]) -> list[int | None]:
    """Return, for each message that a client sent, the index of its stored message or ``None``.

    Matches keep their order. A client may leave messages out and change some: the longest run
    of messages that agree is matched first, then the parts before and after it.
    """
    places: list[int | None] = [None] * len(sent)
    matcher = SequenceMatcher(None, sent, stored, autojunk=False)
    for run in matcher.get_matching_blocks():
        for offset in range(run.size):
            if sent[run.a + offset] is not None:
                places[run.a + offset] = run.b + offset
    return places
