"""Conversations for the tests: a few by hand, and any that Hypothesis can think of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import bindparam, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    EXACTNESS,
    Block,
    Counts,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.placeholders import has_results
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger import stored_drafts, tables
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import (
    DraftRow,
    NewMessage,
    NewParts,
    SessionRow,
    StoredRow,
)

# Every character there is, NUL too.
any_text = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.text(st.sampled_from('a"\\ \0\n\ufdd0\U0001f600\u00e9')),
)
any_name = any_text.filter(lambda text: "\0" not in text)
"""A text column of PostgreSQL holds no NUL, so a name with one is refused."""
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), any_text)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)
metadata = st.none() | st.dictionaries(any_text, json_values, max_size=3)
maybe_text = st.none() | any_text
fields = st.sampled_from([None, "", "reasoning_content", "thinking", "a\0b", "\\x00"])

texts = st.builds(TextBlock, text=any_text, provider_metadata=metadata)
thinking = st.builds(
    ThinkingBlock,
    thought=any_text,
    source_field=fields | any_text,
    is_hidden=st.booleans(),
    signature=maybe_text,
    encrypted=maybe_text,
    redacted=st.booleans(),
    interrupted=st.booleans(),
    provider_metadata=metadata,
)
visible_blocks: st.SearchStrategy[Block] = st.one_of(
    texts,
    st.builds(
        ToolCallBlock,
        id=any_text,
        name=any_text,
        parameters=json_values,
        arguments=maybe_text,
        provider_metadata=metadata,
    ),
    st.builds(
        ToolResponseBlock,
        call_id=any_text,
        tool_name=any_text,
        result=json_values | st.just("a result that is worth clearing"),
        is_error=st.booleans(),
    ),
    st.builds(
        MediaBlock,
        kind=st.sampled_from(["image", "audio", "video", "file"]),
        mime_type=any_text,
        data=st.none() | st.binary(max_size=20),
        url=maybe_text,
    ),
    st.builds(RawBlock, data=json_values),
)
blocks: st.SearchStrategy[Block] = st.one_of(visible_blocks, thinking)
origins = st.none() | st.builds(
    Origin,
    provider=st.sampled_from([None, "anthropic", "deepseek"]),
    api=st.none() | any_text,
    model=st.sampled_from([None, "m-1"]),
    base_url=st.none(),
    response_id=maybe_text,
)
numbers = st.none() | st.integers(0, 2**70)
usages = st.none() | st.builds(
    Usage,
    input=numbers,
    output=numbers,
    reasoning=numbers,
    cached=numbers,
    cache_write=numbers,
    raw=json_values,
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message that can be appended: only a model's has thinking."""
    role: Role = draw(st.sampled_from(["user", "assistant", "tool", "system"]))
    some = draw(st.lists(blocks if role == "assistant" else visible_blocks, max_size=5))
    return Message(
        role=role,
        blocks=tuple(some),
        status=draw(st.sampled_from(["complete", "interrupted"])),
        origin=draw(origins),
        usage=draw(usages),
        finish_reason=draw(maybe_text),
        metadata=draw(metadata),
    )


tokens = st.integers(0, 1000)


@st.composite
def entries(draw: st.DrawFn) -> NewMessage:
    """Any message, with any counts that fit it."""
    message = draw(messages())
    visible = draw(tokens)
    counts = Counts(
        visible=visible,
        thinking=tuple(draw(tokens) for _ in message.thinking),
        exactness=draw(st.sampled_from(EXACTNESS)),
        clearable=draw(st.integers(0, visible)) if has_results(message) else 0,
    )
    return NewMessage(message, counts, draw(st.none() | st.just({"provider": "x"})))


def said(text: str = "Is 91 prime?") -> NewMessage:
    """A user's message."""
    return NewMessage(user(text), Counts(visible=len(text)))


def answered(
    text: str = "No.", thought: str = "7 * 13", origin: Origin | None = None
) -> NewMessage:
    """A model's reply that thought about it."""
    return NewMessage(
        assistant(
            ThinkingBlock(thought=thought, source_field="reasoning_content"),
            TextBlock(text=text),
            origin=origin,
        ),
        Counts(visible=len(text), thinking=(len(thought),)),
    )


def calling(*ids: str) -> NewMessage:
    """A reply that thinks, says something and calls tools."""
    blocks = [ToolCallBlock(id=id, name="f", parameters={"x": 1}) for id in ids]
    message = assistant(ThinkingBlock(thought="t", source_field="f"), "look", *blocks)
    return NewMessage(message, Counts(visible=5, thinking=(3,)))


def answering(*ids: str) -> NewMessage:
    """What tools answered to such calls."""
    blocks = [ToolResponseBlock(call_id=id, result="r") for id in ids]
    return NewMessage(tool(*blocks), Counts(visible=4))


def asks(*ids: str) -> NewMessage:
    """A reply that is nothing but calls, of 10 tokens."""
    calls = [ToolCallBlock(id=one, name="f") for one in ids]
    return NewMessage(assistant(*calls), Counts(visible=10))


def answers(*ids: str) -> NewMessage:
    """What was answered to them, of 10 tokens."""
    return NewMessage(tool(*[ToolResponseBlock(call_id=one) for one in ids]), Counts(visible=10))


def part(text: str) -> str:
    """A part of a draft, as a recorder might write it."""
    return codec.dumps({"text": text})


def add_part(ledger: Ledger, draft: DraftRow, number: int, text: str) -> bool:
    """Write one part of one draft; False where it is its recorder's no more."""
    (mine,) = ledger.drafts.write_parts([NewParts(draft, number, (text,))])
    return mine


def note(ledger: Ledger, draft: DraftRow, annotations: dict[str, Any]) -> None:
    """Give a draft annotations, as lines from elsewhere may."""
    header = stored_drafts.columns_of(replace(draft, annotations=annotations), until=None)["header"]
    place = {"key": draft.session_key, "of": draft.branch, "it": header}
    ledger.database.write(lambda connection: _SET_HEADER.run(connection, place))


def renew(ledger: Ledger, draft: DraftRow) -> bool:
    """Say that its recorder lives."""
    (mine,) = ledger.drafts.write_parts([NewParts(draft)])
    return mine


def resolved(draft: DraftRow) -> NewMessage | None:
    """What has arrived of a draft that was recorded in such parts, as a message."""
    text = "".join([codec.loads(one)["text"] for one in draft.parts])
    if not text:
        return None
    return NewMessage(
        assistant(text, status="interrupted", origin=draft.origin),
        Counts(visible=len(text)),
        draft.request_facts,
    )


def complete(parts: int) -> NewMessage:
    """The message of which the parts "1 ", "2 ", "3 " ... are the draft."""
    text = "".join([f"{n} " for n in range(1, parts + 1)])
    return NewMessage(assistant(text), Counts(visible=len(text)))


_made = iter(range(1_000_000))
_d = tables.drafts.c
_SET_HEADER = Statement(
    update(tables.drafts)
    .where(_d.session_key == bindparam("key"), _d.branch == bindparam("of"))
    .values(header=bindparam("it"))
)


def new_session(ledger: Ledger, **given: Any) -> SessionRow:
    """An empty session of an owner called ``u``."""
    return ledger.sessions.create("u", f"s{next(_made)}", encoding="o200k_base", **given)


def stored_messages(
    ledger: Ledger, key: int, branch: int = 1, **window: int | None
) -> list[StoredRow]:
    """Return the messages of a branch, or those of a window of it."""
    return ledger.history.moment(key, branch, **window).rows


def without_thinking(ledger: Ledger, key: int, branch: int = 1) -> list[StoredRow]:
    """Return the messages of a branch as a request reads them that sends no thinking."""
    view = ledger.views.view(key, branch, thinking_from=1 << 62)
    return [row for row in view if isinstance(row, StoredRow)]
