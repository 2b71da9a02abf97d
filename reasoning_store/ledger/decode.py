"""Columns to values, pure: a message and its state as they were given.

Written for the load of ten thousand messages: plain columns are not parsed, and the frozen values
are filled past their constructors, which would cost as much as reading the rows.

Knows blocks, codec and the columns' forms (``tables`` describes them); runs no SQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    EXACTNESS,
    Block,
    Counts,
    Exactness,
    Message,
    Origin,
    Role,
    Status,
    TextBlock,
    ThinkingBlock,
    Usage,
)
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.ledger.message_columns import READ
from reasoning_store.ledger.records import NewMessage, StoredRow
from reasoning_store.ledger.view_records import NarrowRow

UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The errors of reading a row that another program wrote or changed."""
_SHORT = 1_000_000
"""Characters up to which the JSON of a page is read by one call."""
_SHAPE = 1 + READ.index("shape")
_NO_THOUGHT: Sequence[Any] = (None,) * 7
# Another value was not written here: the look-up is the check.
ROLES: Mapping[Any, Role] = {role: role for role in get_args(Role)}
_STATUSES: Mapping[Any, Status] = {status: status for status in get_args(Status)}
EXACTNESS_OF: Mapping[Any, Exactness] = dict(enumerate(EXACTNESS))


class Page(NamedTuple):
    """Rows of messages that follow one another."""

    heads: Sequence[Sequence[Any]]
    """Position, and the columns that are read."""
    bodies: Sequence[Sequence[Any]]
    """Position, text, data: one for each head."""
    origins: Mapping[Any, Origin]
    """Every number that a head names."""


_scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def parsed(text: str) -> Any:
    """Return the value of stored JSON."""
    try:
        value, end = _scan(text, 0)  # a row holds one value, with no space around it
        if end == len(text):
            return value
        return codec.loads(text)
    except (ValueError, StopIteration):
        raise CorruptRow("a stored row holds text that is not JSON") from None


def headers_of(shape: str | None) -> list[ThinkingHeader]:
    """Return the headers of a message's thinking blocks."""
    return [ThinkingHeader(*header) for header in parsed(shape)] if shape else []


def headers_of_each(shapes: Sequence[str | None]) -> Iterator[list[ThinkingHeader]]:
    """Yield the headers of each message that has thinking, parsed together."""
    for each in _parsed_each([text for text in shapes if text is not None]):
        yield [*map(ThinkingHeader._make, each)]


def annotations_of(text: str) -> dict[str, Any]:
    """Return what an application keeps with a message."""
    kept = parsed(text)
    if type(kept) is not dict:
        raise CorruptRow("the annotations are no object")
    return kept


def _parsed_each(texts: Sequence[str]) -> Iterator[Any]:
    """Return the values of a page of stored JSON texts, in order.

    One call of the parser reads them all, and makes each name in them once: half the time
    of a call a row. Long texts gain nothing and are not copied together.
    """
    together = None
    if sum(map(len, texts)) < _SHORT:
        try:
            together = json.loads(f"[{','.join(texts)}]")
        except (ValueError, RecursionError):
            pass  # one of them is not JSON: it is found below
    if together is None or len(together) != len(texts):
        return map(parsed, texts)
    return iter(together)


def _unfrozen_class(kind: Any) -> Any:
    """Return a class with the slots of ``kind`` that is not frozen.

    Its objects are made empty, filled in place and become ``kind``'s own by taking that
    class: a third of a frozen constructor, which is called with every field and sets each
    through ``object.__setattr__``.
    """
    names = list(kind.__slots__)
    return make_dataclass(f"_{kind.__name__}", names, slots=True, eq=False, init=False)


_Text, _Thinking, _Message, _Origin, _Usage, _Counts = (
    _unfrozen_class(kind) for kind in (TextBlock, ThinkingBlock, Message, Origin, Usage, Counts)
)
_Stored = _unfrozen_class(StoredRow)


def _text_block(text: str | None) -> TextBlock:
    block: Any = _Text()
    block.text, block.provider_metadata, block.type = text, None, "text"
    block.__class__ = TextBlock
    made: TextBlock = block
    return made


def _with_response_id(origin: Origin, response_id: str) -> Origin:
    """Return an origin with the response id, which is each message's own."""
    copy: Any = _Origin()
    copy.provider, copy.api, copy.model = origin.provider, origin.api, origin.model
    copy.base_url, copy.response_id = origin.base_url, response_id
    copy.__class__ = Origin
    made: Origin = copy
    return made


def thinking_block(
    source_field: str | None, thought: str | None, data: str | None, is_hidden: int
) -> Block:
    """Return the block of a row of ``thinking_blocks``."""
    if data is not None:
        fields = parsed(data)
        if thought is not None:
            fields["thought"] = thought
        if source_field is not None:
            fields["sourceField"] = source_field
        if is_hidden:
            fields["isHidden"] = True
        return codec.block_from_json({"type": "thinking", **fields})
    block: Any = _Thinking()
    block.thought, block.source_field, block.is_hidden = thought, source_field, is_hidden == 1
    block.signature, block.encrypted, block.redacted = None, None, False
    block.interrupted, block.provider_metadata, block.type = False, None, "thinking"
    block.__class__ = ThinkingBlock
    made: ThinkingBlock = block
    return made


def stored_rows(
    branch: int, pages: Iterable[Page], thoughts: Iterable[Sequence[Any]] | None
) -> list[StoredRow]:
    """Return the messages of rows that are in the order of their positions.

    ``thoughts`` are of all pages: position, ordinal, tokens, source_field, thought, data,
    is_hidden. None means that they were not asked for.
    """
    out: list[StoredRow] = []
    thinking = None if thoughts is None else _Thoughts(thoughts)
    for page in pages:
        before = len(out)
        try:
            _add_page(out, page, branch, thinking)
        except (CorruptRow, *UNREADABLE) as error:
            position = page.heads[len(out) - before][0]
            more = f": {error}" if isinstance(error, CorruptRow) else ""
            raise CorruptRow(f"message {position} cannot be read back{more}") from None
    if thinking is not None and thinking.due is not _NO_THOUGHT:
        raise CorruptRow(f"the thinking of message {thinking.due[0]} is out of place")
    return out


def _add_page(out: list[StoredRow], page: Page, branch: int, thinking: _Thoughts | None) -> None:
    """Add the messages of a page; those whose rows are no good are not among them.

    The fields that nearly every message has are read here and not in functions: to call one takes a
    tenth of the time of a message.
    """
    made_by = {None: None, **page.origins}
    values = _parsed_each([data for _, _, data in page.bodies if data is not None])
    headers = (
        headers_of_each([head[_SHAPE] for head in page.heads]) if thinking is None else iter(())
    )
    for head, (_, text, data) in zip(page.heads, page.bodies, strict=True):
        position, id_, role, status, created, origin, visible, exactness, shape, digest, kept = head
        message: Any = _Message()
        message.role, message.status = ROLES[role], _STATUSES[status]
        message.origin = made_by[origin]
        blocks: tuple[Block, ...] = ()
        if text is not None:
            block: Any = _Text()
            block.text, block.provider_metadata, block.type = text, None, "text"
            block.__class__ = TextBlock
            blocks = (block,)
        if data is None:
            message.usage = message.finish_reason = message.metadata = None
        else:
            blocks = _fill_message(message, next(values), text, blocks)
        row: Any = _Stored()
        row.headers = None
        if shape is None:
            row.counts = without_thinking(visible, exactness)
        elif thinking is None:
            row.headers = own = next(headers)
            each = (own[0].tokens,) if len(own) == 1 else tuple([header.tokens for header in own])
            row.counts = counts_of(visible, each, exactness)
        else:
            of, place, tokens, source_field, thought, more, hidden = first = thinking.due
            due = thinking.due = next(thinking.following, _NO_THOUGHT)
            # Nearly always there is one, before all else.
            if of == position != due[0] and not place:
                blocks = (thinking_block(source_field, thought, more, hidden), *blocks)
                row.counts = counts_of(visible, (tokens,), exactness)
            else:
                mine = [first, *thinking.others(position)]
                blocks = _insert_thoughts(position, blocks, mine)
                row.counts = counts_of(visible, tuple([one[2] for one in mine]), exactness)
        message.blocks = blocks
        message.__class__ = Message
        row.id, row.position, row.branch = id_, position, branch
        row.message, row.created_at, row.digest = message, created, digest
        row.is_new = False
        row.annotations = None if kept is None else annotations_of(kept)
        row.__class__ = StoredRow
        out.append(row)


def _fill_message(
    message: Any, data: dict[str, Any], text: str | None, blocks: tuple[Block, ...]
) -> tuple[Block, ...]:
    """Fill a message from its JSON, and return its visible blocks."""
    look = data.get
    told, parts, response = look("usage"), look("blocks"), look("responseId")
    if told is None:
        message.usage = None
    else:
        if type(told) is not list:
            raise TypeError("what was reported stands by place")
        usage: Any = _Usage()
        usage.input, usage.output, usage.reasoning, usage.cached, usage.raw, *more = told
        (usage.cache_write,) = more or (None,)
        usage.__class__ = Usage
        message.usage = usage
    message.finish_reason, message.metadata = look("finishReason"), look("metadata")
    if response is not None and message.origin is not None:
        message.origin = _with_response_id(message.origin, response)
    return blocks if parts is None else _visible(parts, text)


class _Thoughts:
    """The rows of thinking blocks, which come in the order of their messages."""

    __slots__ = ("due", "following")

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self.following = iter(rows)
        self.due = next(self.following, _NO_THOUGHT)
        """The first that no message has had yet."""

    def others(self, position: int) -> Iterator[Sequence[Any]]:
        """Yield the next ones, as long as they are of this message."""
        while self.due[0] == position:
            yield self.due
            self.due = next(self.following, _NO_THOUGHT)


def new_row(entry: NewMessage, columns: Mapping[str, Any], branch: int, position: int) -> StoredRow:
    """Return what was just written as the row that it is."""
    row: Any = _Stored()
    row.id, row.position, row.branch, row.message = columns["id"], position, branch, entry.message
    row.counts, row.created_at, row.digest = entry.counts, columns["created_at"], columns["digest"]
    row.is_new, row.headers = True, None
    row.annotations = dict(entry.annotations) if entry.annotations else None
    row.__class__ = StoredRow
    made: StoredRow = row
    return made


@lru_cache(maxsize=4096)
def without_thinking(visible: int, exactness: int) -> Counts:
    """Return one value for all messages that count the same: most are of a few lengths."""
    return counts_of(visible, (), exactness)


def counts_of(visible: int, thinking: tuple[int, ...], exactness: int) -> Counts:
    counts: Any = _Counts()
    counts.visible, counts.thinking, counts.exactness = visible, thinking, EXACTNESS_OF[exactness]
    counts.clearable = 0
    counts.__class__ = Counts
    made: Counts = counts
    return made


def _visible(stored: Sequence[Any], text: str | None) -> tuple[Block, ...]:
    """Return the visible blocks; null is in the place of the text that has its own column."""
    return tuple(
        [_text_block(text) if item is None else codec.block_from_json(item) for item in stored]
    )


def _insert_thoughts(
    position: int, blocks: tuple[Block, ...], thoughts: Sequence[Sequence[Any]]
) -> tuple[Block, ...]:
    """Return the blocks of a message in order: the visible ones and the thinking ones."""
    found = thoughts[0][0]
    if found != position:
        stray = found is not None and found < position
        raise CorruptRow(
            f"thinking of {found} is out of place" if stray else "its thinking is not there"
        )
    together = list(blocks)
    for _, place, _, *columns in thoughts:
        together.insert(place, thinking_block(*columns))
    return tuple(together)


def narrow_rows(rows: Sequence[Sequence[Any]], origins: Mapping[int, Origin]) -> list[NarrowRow]:
    """Return the rows of messages of which no block was read, in order."""
    out: list[NarrowRow] = []
    headers = headers_of_each([row[-1] for row in rows])
    try:
        for position, role, status, origin, visible, clearable, exactness, flags, shape in rows:
            own: Sequence[ThinkingHeader] = ()
            if shape is None:
                counts = without_thinking(visible, exactness)
            else:
                own = next(headers)
                each = tuple([header.tokens for header in own])
                counts = counts_of(visible, each, exactness)
            out.append(
                NarrowRow(
                    position,
                    position,
                    ROLES[role],
                    _STATUSES[status],
                    None if origin is None else origins[origin],
                    counts,
                    clearable,
                    flags,
                    own,
                )
            )
    except UNREADABLE:
        raise CorruptRow(f"message {rows[len(out)][0]} cannot be read back") from None
    return out
