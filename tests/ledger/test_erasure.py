"""Erasing is real: what was erased is nowhere, and what is left is whole."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
)
from reasoning_store.conversation.errors import Conflict, NotFound
from reasoning_store.conversation.tool_pairs import erased_with, tool_blocks
from reasoning_store.ledger import records
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import Erased, NewMessage
from reasoning_store.ledger.tables import metadata
from tests.properties import examples

from .compacting import compact
from .erasures import Step, found, steps
from .histories import (
    add_part,
    answered,
    answering,
    calling,
    new_session,
    part,
    resolved,
    said,
    stored_messages,
)
from .opening import never_rewritten
from .whole import count, narrow, whole


def statuses(ledger: Ledger, key: int, branch: int = 1) -> list[str]:
    return [row.message.status for row in stored_messages(ledger, key, branch)]


def erased_at(ledger: Ledger, key: int, branch: int = 1) -> list[int]:
    return [
        row.position
        for row in stored_messages(ledger, key, branch)
        if row.message.status == "erased"
    ]


def rows_of(ledger: Ledger, key: int) -> dict[str, int]:
    """How many rows of each table start with this key."""
    return {
        name: ledger.database.read(
            lambda connection, name=name: (  # type: ignore[misc]
                driver(connection)
                .execute(f"SELECT count(*) FROM {name} WHERE session_key = {key}")  # noqa: S608
                .fetchone()[0]
            )
        )
        for name in metadata.tables
    }


def test_an_erased_message_leaves_its_position_and_role(ledger: Ledger) -> None:
    """And nothing else: no text, thought, origin, usage, count, nor what was sent."""
    session = new_session(ledger)
    full = NewMessage(
        assistant(
            ThinkingBlock(thought="t", signature="s", source_field="f"),
            TextBlock(text="x"),
            origin=Origin(provider="p", response_id="r"),
            usage=Usage(input=1, output=2, reasoning=1, cached=0, raw={"x": 1}),
            finish_reason="stop",
            metadata={"m": 1},
        ),
        Counts(visible=5, thinking=(3,), exactness="estimated"),
        {"provider": "p"},
    )
    before = ledger.messages.append(session.key, 1, [said(), full, said()])

    done = ledger.erasure.erase_message(session.key, 1, 2)
    row = ledger.history.get(session.key, 1, 2)

    assert Erased(messages=1, thinking_blocks=1) == replace(done, copies=())
    assert row.message == Message(role="assistant", status="erased")
    assert row.counts == Counts()
    assert (row.id, row.position, row.created_at) == (before[1].id, 2, before[1].created_at)
    assert ledger.views.last_request(session.key, 1) is None
    assert [row.message.role for row in stored_messages(ledger, session.key, 1)] == [
        "user",
        "assistant",
        "user",
    ]
    assert rows_of(ledger, session.key) | {"sessions": 1, "origins": 0, "thinking_blocks": 0} == (
        rows_of(ledger, session.key)
    )
    whole(ledger, session.key)
    assert replace(ledger.erasure.erase_message(session.key, 1, 2), copies=()) == Erased()
    assert ledger.messages.append(session.key, 1, [said()])[0].position == 4


def test_a_session_says_when_it_was_last_erased_in(ledger: Ledger) -> None:
    """The one who remembers rows learns that they are stale; no two erasures look alike."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), said(), said()])
    seen = [ledger.sessions.get(session.owner, session.id).erased_at]
    for position in (1, 2, 2):
        ledger.erasure.erase_message(session.key, 1, position)
        seen.append(ledger.sessions.get(session.owner, session.id).erased_at)

    assert seen[0] is None
    assert seen[1] is not None
    assert seen[2] is not None
    assert seen[1] < seen[2]
    assert seen[2] == seen[3], "nothing was there to erase"


def test_an_erased_user_message_starts_no_turn(ledger: Ledger) -> None:
    """What it began belongs to the turn before, and the sums are those of what is left."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, [said(), calling("c"), answering("c"), said(), answered()]
    )

    ledger.erasure.erase_message(session.key, 1, 4)

    assert ledger.branches.turn_start(session.key, 1) == 1
    whole(ledger, session.key)


def test_only_the_reasoning_of_a_message_goes(ledger: Ledger) -> None:
    """The chat stays as it was, with its origin, its usage and what was sent."""
    session = new_session(ledger)
    origin = Origin(provider="p", model="m")
    first = replace(answered(origin=origin), request_facts={"provider": "p"})
    ledger.messages.append(session.key, 1, [said(), first, answered("later", "other")])

    done = ledger.erasure.erase_message(session.key, 1, 2, only="reasoning")

    row = ledger.history.get(session.key, 1, 2)
    assert replace(done, copies=()) == Erased(thinking_blocks=1)
    assert row.message == replace(first.message, blocks=(TextBlock(text="No."),))
    assert row.counts == Counts(visible=3)
    assert ledger.views.last_request(session.key, 1) is not None
    assert count(ledger, session.key)[1] == len("other")
    whole(ledger, session.key)
    assert (
        replace(ledger.erasure.erase_message(session.key, 1, 2, only="reasoning"), copies=())
        == Erased()
    )


SEAL = "<seal>" * 9
_CALL = ToolCallBlock(id="c", name="f", parameters={"x": 1})
SEALED: dict[str, tuple[tuple[Block, ...], tuple[Block, ...]]] = {
    "Gemini's text": (
        (TextBlock(text="No.", provider_metadata={"thoughtSignature": SEAL, "x": 1}),),
        (TextBlock(text="No.", provider_metadata={"x": 1}),),
    ),
    "Gemini's text that ends a stream": (
        (TextBlock(text="No."), TextBlock(text="", provider_metadata={"thoughtSignature": SEAL})),
        (TextBlock(text="No."),),
    ),
    "Gemini's call": ((replace(_CALL, provider_metadata={"thoughtSignature": SEAL}),), (_CALL,)),
    "a call of Gemini's by Chat Completions": (
        (
            replace(
                _CALL,
                provider_metadata={"extra_content": {"google": {"thought_signature": SEAL}}},
            ),
        ),
        (_CALL,),
    ),
    "a picture that was only thought": (
        (TextBlock(text="No."), RawBlock(data={"thought": True, "inlineData": SEAL})),
        (TextBlock(text="No."),),
    ),
    "code that was run": (
        (RawBlock(data={"executableCode": {"code": "1"}, "thoughtSignature": SEAL}),),
        (RawBlock(data={"executableCode": {"code": "1"}}),),
    ),
}


@pytest.mark.parametrize("kind", SEALED)
@pytest.mark.parametrize("whole_session", [True, False])
def test_the_seals_of_thoughts_go_with_the_reasoning(
    sqlite_path: Path, kind: str, whole_session: bool
) -> None:
    """Next to a text or a call, too; all else that is there stays, and what was sent with it."""
    blocks, left = SEALED[kind]
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        entry = NewMessage(assistant(*blocks), Counts(visible=3), {"provider": "p"})
        ledger.messages.append(session.key, 1, [said(), entry])

        if whole_session:
            ledger.erasure.erase_session(session.key, only="reasoning")
        else:
            ledger.erasure.erase_message(session.key, 1, 2, only="reasoning")

        assert ledger.history.get(session.key, 1, 2).message.blocks == left
        assert ledger.views.last_request(session.key, 1) is not None
        assert found(sqlite_path, "seal") == {}
        whole(ledger, session.key)


def test_a_summary_stays_if_only_a_seal_was_erased(ledger: Ledger) -> None:
    """It was made of what was said, and that is still there."""
    session = new_session(ledger)
    sealed = assistant(TextBlock(text="No.", provider_metadata={"thoughtSignature": SEAL}))
    ledger.messages.append(session.key, 1, [said(), NewMessage(sealed, Counts(visible=3)), said()])
    compact(ledger, session.key, 1, 1, 2, said("They spoke."))

    ledger.erasure.erase_session(session.key, only="reasoning")

    assert len(ledger.views.compactions(session.key, 1)) == 1


def test_what_is_left_can_be_counted_anew(ledger: Ledger) -> None:
    """By the caller, in the session's encoding, outside of any transaction."""
    session = new_session(ledger)
    counted = Counts(visible=9, thinking=(5,), exactness="estimated")
    ledger.messages.append(session.key, 1, [NewMessage(answered().message, counted)])
    asked: list[tuple[Message, str]] = []

    def count(message: Message, encoding: str) -> Counts:
        asked.append((message, encoding))
        ledger.sessions.page("u")
        return Counts(visible=7)

    ledger.erasure.erase_session(session.key, only="reasoning", count=count)

    assert asked == [(assistant("No."), "o200k_base")]
    (row,) = narrow(ledger, session.key, 1)[1]
    assert row.counts == Counts(visible=7)
    whole(ledger, session.key)


@pytest.mark.parametrize("position", [2, 3, 4, 5])
def test_tool_pairs_go_together(ledger: Ledger, position: int) -> None:
    """Whichever of them is named: the calls, and every answer, with what those call."""
    session = new_session(ledger)
    both = NewMessage(
        Message(
            role="user",
            blocks=(ToolResponseBlock(call_id="b", result="r"), TextBlock(text="and?")),
        ),
        Counts(visible=4),
    )
    ledger.messages.append(
        session.key,
        1,
        [
            said(),
            calling("a", "b"),
            answering("a"),
            both,
            answering("a"),
            calling("z"),
            answering("z"),
        ],
    )

    done = ledger.erasure.erase_message(session.key, 1, position)

    assert erased_at(ledger, session.key) == [2, 3, 4, 5]
    assert (done.messages, done.thinking_blocks) == (4, 1)
    whole(ledger, session.key)


def test_an_id_that_comes_again_is_another_call(ledger: Ledger) -> None:
    """Providers that count their calls from 0 in each turn."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key,
        1,
        [calling("0"), answering("0"), said(), calling("0"), answering("0"), said("x")],
    )

    ledger.erasure.erase_message(session.key, 1, 2)
    assert erased_at(ledger, session.key) == [1, 2]
    ledger.erasure.erase_message(session.key, 1, 4)
    assert erased_at(ledger, session.key) == [1, 2, 4, 5]


def test_a_pair_is_found_on_every_branch_that_shares_the_call(ledger: Ledger) -> None:
    """A call that was answered once in each branch goes with all of its answers."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), calling("c"), answering("c"), said("one")])
    two = ledger.branches.fork(session.key, 1, 3)
    ledger.messages.append(session.key, two, [answering("c"), said("two")])
    three = ledger.branches.fork(session.key, 1, 2)
    ledger.messages.append(session.key, three, [calling("c"), answering("c")])

    ledger.erasure.erase_message(session.key, two, 3)

    assert erased_at(ledger, session.key, 1) == [2, 3]
    assert erased_at(ledger, session.key, two) == [2, 3]
    assert erased_at(ledger, session.key, three) == []
    for branch in (1, two, three):
        whole(ledger, session.key)
        assert ledger.branches.get(session.key, branch).head >= 3


def partners(messages: list[tuple[int, Message]], start: int) -> set[int]:
    """What has to go with a message of one lineage, the slow way: by position."""
    asked_by: dict[int, set[int]] = {}
    there = [(position, one) for position, one in messages if one.status != "erased"]
    for caller, response in erased_with([tool_blocks(message) for _, message in there]):
        one, other = there[caller][0], there[response][0]
        asked_by.setdefault(one, set()).add(other)
        asked_by.setdefault(other, set()).add(one)
    found = {start}
    while True:
        more = {other for one in found for other in asked_by.get(one, ())} | found
        if more == found:
            return found
        found = more


@examples(60)
@given(steps=steps)
def test_whatever_is_erased_the_rest_is_whole(ledger: Ledger, steps: list[Step]) -> None:
    """In any history, on every branch: each row is its message's, and no other message changed."""
    never_rewritten(ledger)
    session = new_session(ledger)
    key = session.key
    branches = [1]
    expected: dict[str, Message] = {}
    for kind, which, what in steps:
        branch = branches[which % len(branches)]
        head = ledger.branches.get(key, branch).head
        if kind == "append":
            for row in ledger.messages.append(key, branch, what):
                expected[row.id] = row.message
        elif kind == "fork":
            branches.append(ledger.branches.fork(key, branch, min(what, head) + 1))
        elif kind == "all reasoning":
            ledger.erasure.erase_session(key, only="reasoning")
            expected = {id: without_thinking(message) for id, message in expected.items()}
        elif head:
            position = what % head + 1
            only: Any = None if kind == "erase" else "reasoning"
            goes = together(ledger, key, branches, branch, position) if only is None else None
            target = ledger.history.get(key, branch, position).id
            ledger.erasure.erase_message(key, branch, position, only=only)
            if goes is None:
                expected[target] = without_thinking(expected[target])
            for id in goes or ():
                expected[id] = Message(role=expected[id].role, status="erased")

    whole(ledger, key)
    for branch in branches:
        for row in stored_messages(ledger, key, branch):
            assert expected[row.id] == row.message


def without_thinking(message: Message) -> Message:
    return replace(
        message, blocks=tuple(b for b in message.blocks if not isinstance(b, ThinkingBlock))
    )


def together(ledger: Ledger, key: int, branches: list[int], branch: int, at: int) -> set[str]:
    """The ids of what goes with a message, in all branches that have it."""
    lineages = [stored_messages(ledger, key, one) for one in branches]
    start = ledger.history.get(key, branch, at).id
    found: set[str] = {start}
    while True:
        more = set(found)
        for rows in lineages:
            ids = {row.position: row.id for row in rows}
            pairs = [(row.position, row.message) for row in rows]
            for row in rows:
                if row.id in found:
                    more |= {ids[one] for one in partners(pairs, row.position)}
        if more == found:
            return found
        found = more


def test_an_erased_session_leaves_no_row(ledger: Ledger) -> None:
    """Nor a draft; the others keep theirs, and its name is free again."""
    kept, gone = new_session(ledger), new_session(ledger)
    for session in (kept, gone):
        ledger.messages.append(session.key, 1, [said(), answered(origin=Origin(model="m"))])
        fork = ledger.branches.fork(session.key, 1, 2)
        ledger.messages.append(session.key, fork, [answered()])
        draft = ledger.drafts.begin(session.key, 1)
        add_part(ledger, draft, 1, part("so far"))

    before = rows_of(ledger, kept.key)
    done = ledger.erasure.erase_session(gone.key)

    assert replace(done, copies=()) == Erased(sessions=1, messages=3, thinking_blocks=2)
    assert set(rows_of(ledger, gone.key).values()) == {0}
    assert before == rows_of(ledger, kept.key)
    for missing in (
        lambda: ledger.sessions.get("u", gone.id),
        lambda: ledger.messages.append(gone.key, 1, [said()]),
        lambda: ledger.erasure.erase_session(gone.key),
        lambda: ledger.erasure.erase_session(gone.key, only="reasoning"),
        lambda: ledger.erasure.erase_message(gone.key, 1, 1),
    ):
        with pytest.raises(NotFound):
            missing()
    again = ledger.sessions.create("u", gone.id, encoding="o200k_base")
    assert (
        ledger.messages.append(again.key, 1, [answered(origin=Origin(model="m"))])[0].position == 1
    )


def test_an_owner_is_erased_with_all_that_is_his(ledger: Ledger) -> None:
    """Archived sessions and profiles too; another owner's stay; no one is nothing."""
    ledger.profiles.set("gone", "brief", {})
    for n in range(3):
        session = ledger.sessions.create("gone", f"s{n}", encoding="o200k_base")
        ledger.messages.append(session.key, 1, [said(), answered()])
        ledger.sessions.archive(session.key, archived=n == 1)
    kept = ledger.sessions.create("kept", "s0", encoding="o200k_base")
    ledger.messages.append(kept.key, 1, [said(), answered()])

    only = ledger.erasure.erase_owner("gone", only="reasoning")
    done = ledger.erasure.erase_owner("gone")

    assert replace(only, copies=()) == Erased(thinking_blocks=3)
    assert replace(done, copies=()) == Erased(sessions=3, messages=6, profiles=1)
    assert ledger.profiles.all_of("gone") == []
    assert ledger.sessions.page("gone", archived=None).items == []
    assert len(stored_messages(ledger, kept.key, 1)[1].message.thinking) == 1
    assert replace(ledger.erasure.erase_owner("nobody"), copies=()) == Erased()


def test_the_reasoning_of_a_session_goes_on_all_branches(ledger: Ledger) -> None:
    """Also that of a reply that is being recorded, which ends for it."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), answered(), said(), answered()])
    fork = ledger.branches.fork(session.key, 1, 4)
    ledger.messages.append(session.key, fork, [answered()])
    draft = ledger.drafts.begin(session.key, fork)
    add_part(ledger, draft, 1, part("so far"))

    with pytest.raises(Conflict):
        ledger.erasure.erase_session(session.key, only="reasoning")
    done = ledger.erasure.erase_session(session.key, only="reasoning", draft_message=resolved)

    assert replace(done, copies=()) == Erased(thinking_blocks=3)
    for branch in (1, fork):
        assert [row.message.thinking for row in stored_messages(ledger, session.key, branch)] == (
            [()] * ledger.branches.get(session.key, branch).head
        )
    assert stored_messages(ledger, session.key, fork)[-1].message.text == "so far"
    whole(ledger, session.key)


def test_a_session_made_again_while_its_reasoning_is_erased_is_another(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to lose its reasoning is gone, and nothing is stated to be damaged."""
    monkeypatch.setattr(records, "_PAGE", 1)
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [answered(), answered(), answered()])

    def counted(message: Message, encoding: str) -> Counts:
        ledger.erasure.erase_session(session.key)
        ledger.sessions.create(session.owner, session.id, encoding=encoding)
        return Counts(visible=1)

    with pytest.raises(NotFound):
        ledger.erasure.erase_session(session.key, only="reasoning", count=counted)


@pytest.mark.parametrize("only", [None, "reasoning"])
def test_a_late_repeat_does_not_bring_back_what_was_erased(ledger: Ledger, only: Any) -> None:
    """The key still stands for it, and says that it was erased; the key itself is kept nowhere."""
    session = new_session(ledger)
    batch = [said(), answered(), said()]
    ledger.messages.append(session.key, 1, batch, idempotency_key="CANARY-KEY")
    ledger.erasure.erase_message(session.key, 1, 2, only=only)

    with pytest.raises(Conflict, match="erased") as caught:
        ledger.messages.append(session.key, 1, batch, idempotency_key="CANARY-KEY")

    assert len(caught.value.stored) == 3
    assert ledger.branches.get(session.key, 1).head == 3
    stored = ledger.database.read(
        lambda connection: (
            driver(connection).execute("SELECT idempotency_key FROM messages").fetchall()
        )
    )
    assert "CANARY" not in str(stored)


def test_unused_origins_are_removed(ledger: Ledger) -> None:
    """And those that another message has stay."""
    session = new_session(ledger)
    one, two = Origin(model="one"), Origin(model="two")
    ledger.messages.append(session.key, 1, [answered(origin=one), answered(origin=two)])
    ledger.messages.append(session.key, 1, [answered(origin=one)])

    ledger.erasure.erase_message(session.key, 1, 2)
    assert rows_of(ledger, session.key)["origins"] == 1
    ledger.erasure.erase_message(session.key, 1, 1)
    assert rows_of(ledger, session.key)["origins"] == 1
    ledger.erasure.erase_message(session.key, 1, 3)
    assert rows_of(ledger, session.key)["origins"] == 0
    assert ledger.messages.append(session.key, 1, [answered(origin=two)])[0].message.origin == two
    assert ledger.history.get(session.key, 1, 4).message.origin == two


def test_a_message_that_is_not_there_cannot_be_erased(ledger: Ledger) -> None:
    """And nothing changes."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])

    for branch, position in ((1, 0), (1, 2), (1, -1), (1, 10**30), (2, 1), (0, 1)):
        for only in (None, "reasoning"):
            with pytest.raises(NotFound):
                ledger.erasure.erase_message(session.key, branch, position, only=only)

    assert statuses(ledger, session.key) == ["complete"]


def test_erasing_while_others_write_and_fork(ledger: Ledger) -> None:
    """No error, no gap, and every state is what a recount gives."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), answered()] * 20)
    turn = [said(), calling("c"), answering("c"), answered(origin=Origin(model="m"))]
    stop = threading.Event()

    def write(n: int) -> int:
        for turns in range(12):
            ledger.messages.append(session.key, 1, turn, idempotency_key=f"{n} {turns}")
        return 12

    def fork(_: int) -> int:
        while not stop.is_set():
            branch = ledger.branches.fork(session.key, 1, 30)
            ledger.messages.append(session.key, branch, turn)
        return 0

    def erase(n: int) -> int:
        for position in range(n, 40, 5):
            ledger.erasure.erase_message(
                session.key,
                1,
                position,
                only=None if position % 2 else "reasoning",
            )
        return 0

    with ThreadPoolExecutor(6) as pool:
        forking = pool.submit(fork, 0)
        writing = [pool.submit(write, n) for n in range(3)]
        erasing = [pool.submit(erase, n) for n in (1, 3)]
        turns = sum(one.result() for one in [*writing, *erasing])
        stop.set()
        forking.result()

    assert ledger.branches.get(session.key, 1).head == 40 + 4 * turns
    whole(ledger, session.key)
