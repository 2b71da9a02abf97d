"""The blocks that a refusal is about: named by it, or under suspicion.

A refusal names a block by an id, by its indexes in the body, or by the ends of its ciphertext. A
name holds only where its block is of the kind that the refusal is about: a gateway that converts a
request passes on the indexes of another body. If nothing is named, each block of that kind is a
suspect, and a search finds the one that is refused by asking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from reasoning_store.conversation import seals
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.egress.refusals import Act
from reasoning_store.egress.request import Request, source_of, written_messages
from reasoning_store.egress.request_places import Key, Place
from reasoning_store.wire.content_parts import result_parts


@dataclass(frozen=True, slots=True)
class Found:
    """The blocks that a refusal is about."""

    places: tuple[Place, ...]
    is_certain: bool
    """The refusal names them; else each of them is a suspect."""
    reason: str = ""
    """Why no block was found."""


def error_text(error: object) -> str:
    """Return the text of a refusal: a text, the body of a response, or an SDK's exception."""
    if isinstance(error, BaseException):
        response = getattr(error, "response", None)
        held = [getattr(error, "body", None), response, _text_of(response)]
        return " ".join([str(error), *(text for value in held for text in _strings(value))])
    if isinstance(error, str | bytes | Mapping):
        plain = error.decode("utf-8", "replace") if isinstance(error, bytes) else error
        return " ".join(_strings(plain))
    raise InvalidCall(
        f"error must be the provider's error, not {type(error).__name__}",
        hint="pass the exception of the SDK, the body of the response, or its text",
    )


def find_refused(request: Request, act: Act, text: str) -> Found:
    """Return the blocks of a request that a refusal is about, with the act that its row names."""
    sent = len(written_messages(request))
    beyond = [found for found in _INDEXES.findall(text) if int(found[0]) >= sent]
    if beyond:
        reason = f"the refusal names message {beyond[0][0]}, and the request has {sent}"
        return Found((), is_certain=False, reason=reason)
    blocks = dict(_blocks_of(request, act))
    if not blocks:
        return Found((), is_certain=False, reason="the request has no block that it can be about")
    named = [place for place in _named(request, text, blocks) if place in blocks]
    if named:
        return Found(tuple(dict.fromkeys(named)), is_certain=True)
    return Found(tuple(blocks), is_certain=len(blocks) == 1)


IsAccepted: TypeAlias = Callable[[Sequence[Place]], bool]
"""Whether the provider takes the request without these blocks."""


def search_refused(suspects: Sequence[Place], is_accepted: IsAccepted) -> Found:
    """Return the suspect that is refused; asks at most log2 of their number, and once more.

    Each question leaves out all suspects from one on, so what stands before a thought that is sent
    is as it was when the thought was made.
    """
    accepted, refused = 0, len(suspects)  # with so many of the first suspects
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        if is_accepted(suspects[middle:]):
            accepted = middle
        else:
            refused = middle
    only = suspects[accepted:refused]
    if is_accepted(only):
        return Found(tuple(only), is_certain=True)
    return Found(tuple(suspects[accepted:]), is_certain=False)


# Kinds


def _blocks_of(request: Request, act: Act) -> Iterator[tuple[Place, Block]]:
    """Yield the blocks that were sent of the kind that an act is about."""
    sent = {(one.message, one.block) for found in request.places.values() for one in found}
    kept = {(verdict.message, verdict.block) for verdict in request.verdicts if verdict.kept}
    is_of_kind = _KINDS.get(act)
    for item in source_of(request).view if is_of_kind else ():
        for number, block in item.blocks:
            place = Place(item.number, number)
            is_sent = place[:2] in (kept if isinstance(block, ThinkingBlock) else sent)
            if act == "media" and is_sent and isinstance(block, ToolResponseBlock):
                for piece, part in enumerate(result_parts(block) or ()):
                    if isinstance(part, MediaBlock):
                        yield place._replace(piece=piece), part
            elif is_of_kind and is_of_kind(block) and (is_sent or act == "text"):
                yield place, block


_KINDS: Final[Mapping[Act, Callable[[Block], bool]]] = {
    "block": lambda block: isinstance(block, ThinkingBlock),
    "seal": lambda block: seals.without_seal(block) is not block,
    "media": lambda block: isinstance(block, MediaBlock),
    "text": lambda block: isinstance(block, TextBlock) and not block.text.strip(),
}


# Names


_INDEXES: Final = re.compile(
    r"(?:messages|input|contents|message index|at index)\W{0,4}(\d+)"
    r"(?:\W{1,3}(?:content|parts)\W{1,3}(\d+))?"
    r"(?:\W{1,3}tool_?result\W{1,3}content\W{1,3}(\d+))?",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"[\w:.-]*\w")
_ENDS: Final = re.compile(r"([\w+/=-]{3,})(?:\.\.\.|\u2026)([\w+/=-]{2,})")


def _named(request: Request, text: str, blocks: Mapping[Place, Block]) -> list[Place]:
    """Return the blocks that a refusal names: by an id, else by indexes, else by their ends."""
    places = request.places
    by_id = [place for word in _WORDS.findall(text) for place in places.get(word, ())]
    if any(place in blocks for place in by_id):
        return by_id
    for found in _INDEXES.finditer(text):
        indexes: Key = tuple(int(index) for index in found.groups() if index is not None)
        by_index = places.get(indexes, ())
        if any(place in blocks for place in by_index):
            return [*by_index]
    ends = _ENDS.findall(text)
    by_ends = [
        place
        for place, block in blocks.items()
        if any(
            seal.startswith(first) and seal.endswith(last)
            for seal in _seals_of(block)
            for first, last in ends
        )
    ]
    return by_ends if len(by_ends) == 1 else []


def _seals_of(block: Block) -> list[str]:
    if not isinstance(block, ThinkingBlock):
        return []
    return [seal for seal in (block.encrypted, block.signature) if seal]


def _text_of(response: object) -> Any:
    """Return the text of a response; None for one that is not read yet."""
    try:
        return getattr(response, "text", None)
    except Exception:  # a client's own error about a stream that was not read
        return None


def _strings(value: Any) -> Iterator[str]:
    """Yield the texts in a value, each list and mapping read through."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
