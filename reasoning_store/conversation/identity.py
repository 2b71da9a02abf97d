"""The numbers by which a conversation is known again that a client sends back.

A client keeps role, text and calls of its messages, and loses the thoughts. Each reply has numbers
of what its client sent and was given:

- ``whole``: the system prompt and every message up to the reply
- ``place``: the same without the system prompt
- ``pair``: the messages since the reply before it
- ``calls``: the ids of its calls, or of the items of its text
- ``item``: the id of each item of the Responses protocol
- ``asked``: the system prompt and every message before the reply

White space, the Unicode form and the order of the results of one step are not part of them: clients
change them. A message whose calls have own ids is these ids, since clients change the text next to
calls. The owner is part of every number.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.digests import digest_texts

_63_BITS = (1 << 63) - 1
_PLAIN = string.ascii_letters + string.digits
_SPACE = b" \t\n\r\v\f\x1c\x1d\x1e\x1f"
_WIDE_SPACE = "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_LONG, _SHORT = 16, 8
MADE_HERE: Final = "rs_call_"
"""How an id begins that no provider gave: its client has none."""
_SECTION = "---"
"""The delimiter of rendered thinking, without its line ends."""

VisibleText: TypeAlias = Callable[[str], str]
"""Returns the text of a reply without delimiters, which some clients are given and others not."""


class Asked(NamedTuple):
    """A client's messages up to where its reply begins, as numbers."""

    owner: int
    whole: int
    place: int
    since: int
    """The messages since the last reply."""
    group: int = 0
    """The client's own name of the conversation; 0 for none."""
    is_rendered: bool = False
    """Whether the client is given the thinking in its text."""


class Numbers(NamedTuple):
    """The numbers of a reply, made when they are asked for."""

    before: Asked
    link: int
    ids: tuple[str, ...]
    """Of its calls, or of the items of its text, as its client was given them."""

    @property
    def whole(self) -> int:
        return _join(self.before.whole, self.link)

    @property
    def place(self) -> int:
        return _join(self.before.place, self.link)

    @property
    def pair(self) -> int:
        return _join(self.before.since, self.link)

    @property
    def asked(self) -> int:
        return question_number(self.before)

    @property
    def calls(self) -> int | None:
        return _number("calls", str(self.before.owner), *self.ids) if any(self.ids) else None

    @property
    def has_own_ids(self) -> bool:
        """Whether no other conversation can have these ids."""
        return bool(self.ids) and all(map(is_own_id, self.ids))

    @property
    def stored(self) -> tuple[int, ...]:
        """All of them, as they are stored."""
        found = {self.whole, self.place, self.pair, self.asked, self.calls}
        return tuple(sorted(number for number in found if number is not None))


class ReplyNumbers(NamedTuple):
    """The numbers of a reply as they are stored, and the group of its client."""

    numbers: tuple[int, ...]
    group: int


class ClientChain(NamedTuple):
    """A client's messages as numbers."""

    replies: dict[int, Numbers]
    """By the index of each reply."""
    asked: Asked
    """All of them: what the next reply answers."""


def number_messages(
    owner: str,
    messages: Iterable[Message],
    *,
    system: Iterable[str] = (),
    group: str | None = None,
    visible: VisibleText = str,
) -> ClientChain:
    """Return the numbers of a conversation, its system prompt apart."""
    start = owner_number(owner)
    named = 0 if group is None else _number("group", owner, group)
    whole, place, since = (_begin(kind, owner) for kind in ("whole", "place", "since"))
    whole.update(digest_texts(map(plain_text, system)))
    replies: dict[int, Numbers] = {}
    results: list[int] = []

    def add(links: Iterable[int]) -> None:
        data = b"".join([link.to_bytes(8, "big") for link in links])
        for state in (whole, place, since):
            state.update(data)

    def asked() -> Asked:
        numbers = [_as_number(state.copy().digest()) for state in (whole, place, since)]
        return Asked(start, numbers[0], numbers[1], numbers[2], named)

    for index, message in enumerate(messages):
        results += response_links(message)
        link = message_link(message, visible)
        if link is None:
            continue
        add(sorted(results))
        results = []
        if message.role == "assistant":
            replies[index] = Numbers(asked(), link, _given_ids(message))
        add([link])
        if message.role == "assistant":
            since = _begin("since", owner)
    add(sorted(results))
    return ClientChain(replies, asked())


def number_reply(asked: Asked, reply: Message, visible: VisibleText = str) -> ReplyNumbers:
    """Return the numbers of a reply as its client was given it."""
    link = message_link(reply, visible, is_rendered=asked.is_rendered)
    numbers = Numbers(asked, link or 0, _given_ids(reply))
    items = {item_number(asked.owner, id) for id in _item_ids(reply.blocks)}
    return ReplyNumbers((*numbers.stored, *sorted(items)), asked.group)


def owner_number(owner: str) -> int:
    """Return the number of an owner, which is part of all others."""
    return _number("owner", owner)


def item_number(owner: int, id: str) -> int:
    """Return the number of an item, by the id that its provider gave it."""
    return _number("item", str(owner), id)


def _item_ids(blocks: Iterable[Block]) -> list[str]:
    found = [(block.provider_metadata or {}).get("item_id") for block in blocks]
    return [id for id in dict.fromkeys(found) if isinstance(id, str) and id]


def question_number(asked: Asked) -> int:
    """Return the number of what a client asked, which each reply to it has."""
    return _number("asked", str(asked.whole))


def _given_ids(reply: Message) -> tuple[str, ...]:
    calls = [given_id(call.id) for call in reply.tool_calls]
    texts = (block for block in reply.blocks if isinstance(block, TextBlock))
    return tuple(calls or _item_ids(texts))


def response_links(message: Message) -> list[int]:
    """Return the numbers of a message's tool results."""
    return [
        _number(
            "response",
            given_id(block.call_id),
            plain_text(codec.result_text(block)),
        )
        for block in message.blocks
        if isinstance(block, ToolResponseBlock)
    ]


def message_link(
    message: Message, visible: VisibleText = str, *, is_rendered: bool = False
) -> int | None:
    """Return the number of a message without its tool results; ``None`` if it has nothing else."""
    is_reply, calls = message.role == "assistant", message.tool_calls
    if message.role == "tool" and all(isinstance(one, ToolResponseBlock) for one in message.blocks):
        return None
    if is_reply and calls and all(is_own_id(call.id) for call in calls):
        return _number("calls", *(call.id for call in calls))
    text = "".join(_texts(message, is_rendered=is_rendered))
    parts = [plain_text(visible(text) if is_reply and not is_rendered else text)]
    for call in calls:
        parts += ["call", given_id(call.id), call.name, call_arguments(call)]
    media = [] if is_reply else [*map(_media_text, message.blocks)]
    parts += [one for one in media if one]
    return None if not any(parts) and message.role == "tool" else _number(message.role, *parts)


def _texts(message: Message, *, is_rendered: bool) -> Iterator[str]:
    is_open = False
    for block in message.blocks:
        if isinstance(block, TextBlock):
            yield (_SECTION if is_open and block.text else "") + block.text
            is_open = is_open and not block.text
        elif is_rendered and isinstance(block, ThinkingBlock) and block.thought.strip():
            yield ("" if is_open else _SECTION) + block.thought
            is_open = True
    if is_open:
        yield _SECTION


def _media_text(block: Any) -> str:
    if isinstance(block, RawBlock):
        return plain_text(json.dumps(_without_marks(block.data), sort_keys=True))
    if isinstance(block, MediaBlock):
        return codec.dumps(codec.block_to_json(block))
    return ""


def _without_marks(value: Any) -> Any:
    """Return a part of a body without the marks of the prompt cache, which move."""
    if not isinstance(value, Mapping):
        return value
    return {name: one for name, one in value.items() if name != "cache_control"}


def given_id(id: str) -> str:
    """Return the id that a client was given; of one that no provider gave it has none."""
    return "" if id.startswith(MADE_HERE) else id


def is_own_id(id: str) -> bool:
    """Whether an id cannot repeat in another conversation: ``call_1`` and ``f:0`` can."""
    id = given_id(id)
    text = id[len(id.rstrip(_PLAIN)) :]
    kinds = (str.isdigit, str.islower, str.isupper)
    return len(text) >= _LONG or (
        len(text) >= _SHORT and sum(any(map(kind, text)) for kind in kinds) > 1
    )


def plain_text(text: str) -> str:
    """Return a text without what clients change of it."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        for space in _WIDE_SPACE:
            text = text.replace(space, "")
    data = text.encode("utf-8", "surrogatepass").translate(None, _SPACE)
    return data.decode("utf-8", "surrogatepass")


def call_arguments(call: ToolCallBlock) -> str:
    """Return the arguments of a call in one form, however they are spelt."""
    if isinstance(call.parameters, Mapping):
        return _sorted_json(call.parameters)
    try:
        return _sorted_json(json.loads(call.arguments or "{}"))
    except (ValueError, RecursionError):
        return call.arguments or ""


def _sorted_json(value: Any) -> str:
    text = codec.dumps(value)  # keys that are numbers are strings from here on
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def count_equal(sent: Sequence[Message], stored: Sequence[Message], visible: VisibleText) -> int:
    """Return with how many of the stored messages a client's messages begin."""
    pairs = zip(sent, stored, strict=False)
    equal = takewhile(lambda pair: _links(pair[0], visible) == _links(pair[1], visible), pairs)
    return sum(1 for _ in equal)


def _links(message: Message, visible: VisibleText) -> tuple[int | None, ...]:
    return (message_link(message, visible), *sorted(response_links(message)))


def _begin(kind: str, owner: str) -> Any:
    """Return the state of a digest that is asked for on the way."""
    return blake2b(digest_texts((kind, owner)), digest_size=8)


def _join(state: int, link: int) -> int:
    data = state.to_bytes(8, "big") + link.to_bytes(8, "big")
    return _as_number(blake2b(data, digest_size=8).digest())


def _number(*texts: str) -> int:
    return _as_number(digest_texts(texts, size=8))


def _as_number(digest: bytes) -> int:
    return int.from_bytes(digest, "big") & _63_BITS
