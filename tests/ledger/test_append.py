"""Append: positions, batches, idempotency, and what does not fit."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation import thinking_header
from reasoning_store.conversation.blocks import (
    Counts,
    Message,
    Origin,
    ThinkingBlock,
    assistant,
    system,
    user,
)
from reasoning_store.conversation.errors import (
    Conflict,
    CorruptRow,
    InvalidCall,
    NotFound,
    StoreBusy,
)
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, NewMessage
from tests.properties import each, examples

from .histories import answered, entries, new_session, said, stored_messages, without_thinking

ORIGIN = Origin(provider="deepseek", model="deepseek-reasoner", response_id="r-1")


def test_positions_start_at_1_and_have_no_gap(ledger: Ledger) -> None:
    """Whatever is refused or repeated in between takes no position."""
    session = new_session(ledger)

    ledger.messages.append(session.key, 1, [said()], idempotency_key="k")
    ledger.messages.append(session.key, 1, [said()], idempotency_key="k")
    with pytest.raises(Conflict):
        ledger.messages.append(session.key, 1, [said("other")], idempotency_key="k")
    with pytest.raises(Conflict):
        ledger.messages.append(session.key, 1, [said()], after=0)
    batch = ledger.messages.append(session.key, 1, [answered(), said(), answered()])

    assert [row.position for row in batch] == [2, 3, 4]
    assert [row.position for row in stored_messages(ledger, session.key, 1)] == [1, 2, 3, 4]


def test_what_append_returns_is_what_is_read_later(ledger: Ledger) -> None:
    """Ids, times, counts and digests are the stored ones."""
    session = new_session(ledger)

    stored = ledger.messages.append(
        session.key, 1, [said(), answered(origin=ORIGIN)], created_at=17
    )
    read = stored_messages(ledger, session.key, 1)

    assert read == [replace(row, is_new=False) for row in stored]
    assert [row.created_at for row in read] == [17, 17]
    assert read[1].message.origin == ORIGIN


@examples(60)
@given(batches=st.lists(st.lists(entries(), min_size=1, max_size=3), min_size=1, max_size=3))
def test_every_message_comes_back_equal(ledger: Ledger, batches: list[list[NewMessage]]) -> None:
    """Blocks in their order, and every field, on both engines."""
    session = new_session(ledger)
    for batch in batches:
        ledger.messages.append(session.key, 1, batch)

    given_ = [entry for batch in batches for entry in batch]
    read = stored_messages(ledger, session.key, 1)

    assert [entry.message for entry in given_] == [row.message for row in read]
    assert [entry.counts for entry in given_] == [row.counts for row in read]


@examples(40)
@given(batch=st.lists(entries(), min_size=1, max_size=4))
def test_without_thinking_everything_else_is_the_same(
    ledger: Ledger, batch: list[NewMessage]
) -> None:
    """The visible blocks, all counts, and the shape of each thinking block."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, batch)

    for entry, row in zip(batch, without_thinking(ledger, session.key), strict=True):
        visible = tuple(b for b in entry.message.blocks if b not in entry.message.thinking)
        assert replace(entry.message, blocks=visible) == row.message
        assert entry.counts == row.counts
        for header, block, tokens in zip(
            row.headers or (), entry.message.thinking, entry.counts.thinking, strict=True
        ):
            assert block is entry.message.blocks[header.place]
            assert (tokens, block.source_field) == (header.tokens, header.source_field)
            known = {
                thinking_header.SIGNED: block.signature is not None,
                thinking_header.ENCRYPTED: block.encrypted is not None,
                thinking_header.REDACTED: block.redacted,
                thinking_header.INTERRUPTED: block.interrupted,
                thinking_header.HIDDEN: block.is_hidden,
                thinking_header.READABLE: bool(block.thought),
            }
            assert header.flags == sum(flag for flag, is_set in known.items() if is_set)
            assert (header.opaque, header.readable) == (block.opaque, bool(block.thought))


def test_the_same_key_and_messages_return_the_first_result(ledger: Ledger) -> None:
    """Also after other messages, on another branch, and with after= that no longer holds."""
    session = new_session(ledger)
    first = ledger.messages.append(
        session.key, 1, [said(), answered(origin=ORIGIN)], idempotency_key="k", after=0
    )
    ledger.messages.append(session.key, 1, [said("later")])
    fork = ledger.branches.fork(session.key, 1, 2)

    again = ledger.messages.append(
        session.key, 1, [said(), answered(origin=ORIGIN)], idempotency_key="k", after=0
    )
    beside = ledger.messages.append(
        session.key, fork, [said(), answered(origin=ORIGIN)], idempotency_key="k"
    )

    assert [replace(row, is_new=False) for row in first] == again == beside
    assert [row.is_new for row in first] == [True, True]
    assert first[0].id == again[0].id
    assert again == ledger.history.by_idempotency_key(session.key, "k")


@pytest.mark.parametrize(
    "other",
    [
        [said("other")],
        [said(), said()],
        [NewMessage(assistant("Is 91 prime?"), Counts(visible=3))],
        [NewMessage(user("Is 91 prime?", metadata={"x": 1}), Counts(visible=3))],
    ],
    ids=["text", "longer", "role", "metadata"],
)
def test_the_same_key_with_another_body_is_a_conflict(
    ledger: Ledger, other: list[NewMessage]
) -> None:
    """It carries what was stored first, and stores nothing."""
    session = new_session(ledger)
    first = ledger.messages.append(session.key, 1, [said()], idempotency_key="k")

    with pytest.raises(Conflict) as caught:
        ledger.messages.append(session.key, 1, other, idempotency_key="k")

    assert [first[0].id] == [row.id for row in caught.value.stored]
    assert ledger.branches.get(session.key, 1).head == 1


def test_a_key_is_its_sessions_own(ledger: Ledger) -> None:
    """Another session may use the same one."""
    one, other = new_session(ledger), new_session(ledger)

    ledger.messages.append(one.key, 1, [said()], idempotency_key="k")

    assert ledger.messages.append(other.key, 1, [said("x")], idempotency_key="k")[0].is_new
    assert ledger.history.by_idempotency_key(other.key, "never used") is None


def test_the_same_key_fifty_times_at_once_gives_one_row(ledger: Ledger) -> None:
    """And fifty equal answers, one of them new."""
    session = new_session(ledger)
    batch = [said(), answered(origin=ORIGIN)]

    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(
                lambda _: ledger.messages.append(session.key, 1, batch, idempotency_key="once"),
                range(50),
            )
        )

    assert ledger.branches.get(session.key, 1).head == 2
    assert sum(rows[0].is_new for rows in answers) == 1
    assert len({tuple((row.id, row.position, row.digest) for row in rows) for rows in answers}) == 1


def test_after_refuses_a_second_message_at_one_place(ledger: Ledger) -> None:
    """A double submit without a key, and a place that is not reached yet."""
    session = new_session(ledger)

    ledger.messages.append(session.key, 1, [said()], after=0)

    for place in (0, 2, -1, 10**30):
        with pytest.raises(Conflict):
            ledger.messages.append(session.key, 1, [said()], after=place)
    assert ledger.messages.append(session.key, 1, [said()], after=1)[0].position == 2


def test_the_conflict_of_after_has_what_came_first(ledger: Ledger) -> None:
    """The first message after that place; nothing where none is, as at a place not reached."""
    session = new_session(ledger)
    first, _ = ledger.messages.append(session.key, 1, [said("one"), said("two")])
    stands = {0: [replace(first, is_new=False)], 3: None, -1: None, 10**30: None}

    for place, expected in stands.items():
        with pytest.raises(Conflict) as caught:
            ledger.messages.append(session.key, 1, [said()], after=place)
        assert caught.value.stored == expected


def test_the_conflict_of_after_has_the_reply_that_ended_for_it(ledger: Ledger) -> None:
    """It began to arrive while the append was under way, and stands where that was to stand."""
    session = new_session(ledger)
    draft = ledger.drafts.begin(session.key, 1)

    with pytest.raises(Conflict) as caught:
        ledger.messages.append(
            session.key, 1, [said()], after=0, draft_message=lambda draft: answered("so far")
        )

    assert [(row.id, row.message.text) for row in caught.value.stored] == [(draft.id, "so far")]


def test_an_append_gives_up_where_others_always_come_first(ledger: Ledger) -> None:
    """A recorder begins anew each time that its draft is ended: the store is busy."""
    session = new_session(ledger)
    ledger.drafts.begin(session.key, 1)

    def begin_anew(draft: DraftRow) -> NewMessage:
        ledger.drafts.drop(draft)
        ledger.drafts.begin(session.key, 1)
        return answered("so far")

    with pytest.raises(StoreBusy):
        ledger.messages.append(session.key, 1, [said()], draft_message=begin_anew)

    assert stored_messages(ledger, session.key) == []


def test_a_message_after_the_last_one_is_found_when_its_place_is_written(ledger: Ledger) -> None:
    """The branch says that it ends earlier than it does."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("one"), said("two")])
    shorten = "UPDATE branches SET next_position = 2"
    ledger.database.write(lambda connection: driver(connection).execute(shorten))

    with pytest.raises(CorruptRow, match="after the branch's last"):
        ledger.messages.append(session.key, 1, [said("three")])


@pytest.mark.parametrize(("key", "fits"), [("k" * 1000, True), ("k" * 1001, False)])
def test_a_key_is_as_long_as_it_says(ledger: Ledger, key: str, fits: bool) -> None:
    """What is counted is what was given."""
    session = new_session(ledger)
    if fits:
        assert ledger.messages.append(session.key, 1, [said()], idempotency_key=key)[0].is_new
        return
    with pytest.raises(InvalidCall, match="longer than 1000 bytes"):
        ledger.messages.append(session.key, 1, [said()], idempotency_key=key)


@pytest.mark.parametrize("branch", [0, -1, 2, 10**30])
def test_a_branch_that_is_not_there_is_not_found(ledger: Ledger, branch: int) -> None:
    """The same answer for a session that is not there."""
    session = new_session(ledger)

    with pytest.raises(NotFound) as caught:
        ledger.messages.append(session.key, branch, [said()])
    with pytest.raises(NotFound) as absent:
        ledger.messages.append(session.key + 1, branch, [answered(origin=ORIGIN)])

    assert str(caught.value) == str(absent.value)


def test_what_does_not_fit_is_refused_before_anything_is_written(ledger: Ledger) -> None:
    """No message, counts of other blocks, a live draft, a value that is no JSON."""
    session = new_session(ledger)
    wrong: list[list[NewMessage]] = [
        [],
        [said(), NewMessage(assistant("x"), Counts(thinking=(1,)))],
        [said(), NewMessage(assistant("x"), Counts(visible=-1))],
        [said(), NewMessage(assistant("x"), Counts(visible=1 << 70))],
        [said(), NewMessage(assistant("x", status="streaming"), Counts())],
        [said(), NewMessage(Message(role="user", metadata={"x": object()}), Counts())],
    ]

    for batch in wrong:
        with pytest.raises(InvalidCall):
            ledger.messages.append(session.key, 1, batch)
    with pytest.raises(InvalidCall, match="idempotency key"):
        ledger.messages.append(session.key, 1, [said()], idempotency_key="k" * 2000)
    with pytest.raises(InvalidCall, match="created_at"):
        ledger.messages.append(session.key, 1, [said()], created_at=1 << 70)

    assert ledger.branches.get(session.key, 1).head == 0


def test_a_window_is_what_slicing_gives(ledger: Ledger) -> None:
    """limit=, before= and after= against a list, across a fork."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(str(n)) for n in range(1, 7)])
    branch = ledger.branches.fork(session.key, 1, 4)
    ledger.messages.append(session.key, branch, [said(str(n)) for n in range(4, 9)])
    every = list(range(1, 9))

    def read(**window: Any) -> list[int]:
        return [row.position for row in stored_messages(ledger, session.key, branch, **window)]

    assert every == read()
    for limit in (1, 3, 20):
        assert every[-limit:] == read(limit=limit)
        for at in (0, 1, 4, 8, 9, 10**30):
            assert [n for n in every if n < at][-limit:] == read(limit=limit, before=at)
            assert [n for n in every if n > at][:limit] == read(limit=limit, after=at)
            assert [n for n in every if 2 < n < at][-limit:] == read(
                limit=limit, after=2, before=at
            )
    assert read(limit=0) == []
    assert ledger.history.get(session.key, branch, 4).message.text == "4"
    for absent in (0, 9, -1, 10**30):
        with pytest.raises(NotFound):
            ledger.history.get(session.key, branch, absent)


def test_what_was_sent_is_kept_with_the_reply(ledger: Ledger) -> None:
    """The last recorded reply is found from the head and from any earlier position."""
    session = new_session(ledger)
    first = replace(
        answered(), request_facts={"provider": "a", "settings": {"reasoning.effort": "high"}}
    )
    second = replace(answered(), request_facts={"provider": "b\0"})

    assert ledger.views.last_request(session.key, 1) is None
    ledger.messages.append(
        session.key, 1, [said(), first, said(), answered(), said(), second, said()]
    )
    at_head, before = (
        ledger.views.last_request(session.key, 1),
        ledger.views.last_request(session.key, 1, at=5),
    )

    assert at_head is not None
    assert before is not None
    assert (6, second.request_facts) == (at_head.position, at_head.facts)
    assert (2, first.request_facts) == (before.position, before.facts)
    assert ledger.views.last_request(session.key, 1, at=1) is None
    with pytest.raises(NotFound):
        ledger.views.last_request(session.key, 1, at=8)


REFUSED = [
    (user(ThinkingBlock(thought="hm"), "x"), "only a model thinks", "rs.assistant"),
    (tool(ThinkingBlock(thought="", signature="s")), "only a model thinks", "rs.assistant"),
    (system("x", ThinkingBlock(encrypted="e")), "only a model thinks", "rs.assistant"),
    (assistant("x", status="streaming"), "still streaming", "record"),
    (assistant(status="erased"), "erased", "erase"),
]


@each("message, said_, hint", REFUSED)
def test_what_no_conversation_holds_is_refused(
    ledger: Ledger, message: Message, said_: str, hint: str
) -> None:
    """Thinking of anyone but a model, a reply that has not ended, what only erasing makes."""
    session = new_session(ledger)
    counts = Counts(thinking=(0,) * len(message.thinking))

    with pytest.raises(InvalidCall, match=said_) as caught:
        ledger.messages.append(
            session.key, 1, [said(), NewMessage(message, counts)], idempotency_key="k"
        )

    assert hint in (caught.value.hint or "")
    assert ledger.branches.get(session.key, 1).head == 0
    assert ledger.messages.append(session.key, 1, [said()], idempotency_key="k")[0].is_new


@pytest.mark.parametrize(("message", "said_", "hint"), REFUSED)
def test_the_faces_refuse_it_too(url: str, message: Message, said_: str, hint: str) -> None:
    """Both of them, alone and in a batch; nothing is written."""

    async def asynchronous() -> None:
        async with rs.AsyncStore(url) as store:
            session = await store.session("s")
            with pytest.raises(InvalidCall, match=said_):
                await session.append(message)

    with rs.Store(url) as store:
        session = store.session("s", create=True)
        for batch in (message, [rs.user("x"), message]):
            with pytest.raises(InvalidCall, match=said_) as caught:
                session.append(batch)
            assert hint in (caught.value.hint or "")
        asyncio.run(asynchronous())
        assert session.history() == []


def test_an_old_message_makes_its_session_as_old(ledger: Ledger) -> None:
    """The first message says when something was said; an older one after it changes nothing."""
    session = new_session(ledger)
    year = 365 * 86_400_000_000

    ages = []
    for at in (40 * year, 50 * year, 30 * year):
        ledger.messages.append(session.key, 1, [said()], created_at=at)
        ages.append(ledger.sessions.get(session.owner, session.id).updated_at)

    assert ages == [40 * year, 50 * year, 50 * year]
