"""Drafts: a reply is kept while it arrives, ends once, and is never lost or stored twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoning_store.conversation.blocks import Counts, Origin, ThinkingBlock, assistant
from reasoning_store.conversation.errors import Conflict, CorruptRow, InvalidCall, NotFound
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, NewMessage, NewParts

from .drafting import recording, rows_of, texts
from .histories import add_part, answered, complete, new_session, note, part, renew, resolved, said
from .whole import narrow, whole

ORIGIN = Origin(provider="deepseek", model="r1", response_id="r-1")


# Its own end


def test_a_draft_becomes_the_message_that_it_announced(ledger: Ledger) -> None:
    """At its position, under its id and time; its parts are gone; the sums are right."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])
    draft = recording(ledger, session, 3, idempotency_key="k", origin=ORIGIN)
    reply = answered("No.", "7 * 13", ORIGIN)

    (row,) = ledger.drafts.finish(draft, [reply])

    assert (row.id, row.position, row.created_at) == (draft.id, 2, draft.created_at)
    assert row.is_new
    assert replace(row, is_new=False) == ledger.history.get(session.key, 1, 2)
    assert ledger.history.by_idempotency_key(session.key, "k") == [replace(row, is_new=False)]
    assert (ledger.drafts.get(session.key, 1), rows_of(ledger, "draft_parts")) == (None, 0)
    whole(ledger, session.key)
    assert ledger.messages.append(session.key, 1, [said()])[0].position == 3


def test_while_it_arrives_it_has_no_position_and_counts_nothing(ledger: Ledger) -> None:
    """History, usage and the head are those of what is stored."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])
    before = narrow(ledger, session.key, 1)

    draft = recording(ledger, session, 2)

    assert texts(ledger, session) == [said().message.text]
    assert before == narrow(ledger, session.key, 1)
    assert draft.position == 2
    with pytest.raises(NotFound):
        ledger.history.get(session.key, 1, 2)


def test_other_readers_see_it_grow_at_its_end_only(url: str) -> None:
    """All of it, each time; then that it has ended."""
    with Ledger.open(url) as ledger, Ledger.open(url) as reader:
        session = new_session(ledger)
        assert reader.drafts.get(session.key, 1) is None
        draft = recording(ledger, session, origin=ORIGIN, request_facts={"y": 1})
        note(ledger, draft, {"x": "\0"})
        seen: list[str] = []
        for n in range(1, 6):
            add_part(ledger, draft, n, part(f"{n} "))
            found = reader.drafts.get(session.key, 1)
            assert found is not None
            assert list(found.parts[: len(seen)]) == seen
            seen = list(found.parts)
            assert (found.id, found.position, found.expired) == (draft.id, 1, False)
            assert (found.origin, found.annotations, found.request_facts) == (
                ORIGIN,
                {"x": "\0"},
                {"y": 1},
            )

        ledger.drafts.finish(draft, [complete(5)])

        assert reader.drafts.get(session.key, 1) is None
        assert reader.history.get(session.key, 1, draft.position).id == draft.id


def test_what_follows_a_reply_can_end_it_too(ledger: Ledger) -> None:
    """Several messages are one step, under one key."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1, idempotency_key="k")

    rows = ledger.drafts.finish(draft, [complete(1), said()])

    assert [row.position for row in rows] == [1, 2]
    assert rows[0].id == draft.id != rows[1].id
    found = ledger.history.by_idempotency_key(session.key, "k")
    assert found == [replace(row, is_new=False) for row in rows]


def test_ending_it_twice_gives_the_same_rows(ledger: Ledger) -> None:
    """The one who lost the answer may ask again; with other messages it is a conflict."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1)
    first = ledger.drafts.finish(draft, [complete(1), said()])
    ledger.messages.append(session.key, 1, [said()])

    again = ledger.drafts.finish(draft, [complete(1), said()])

    assert again == [replace(row, is_new=False) for row in first]
    for other in ([complete(2)], [complete(1), answered()]):
        with pytest.raises(Conflict) as caught:
            ledger.drafts.finish(draft, other)
        assert caught.value.stored == again[:1]


def test_a_reply_of_which_nothing_came_leaves_nothing(ledger: Ledger) -> None:
    """Dropped, and the branch is free; a second time is nothing."""
    session = new_session(ledger)
    draft = recording(ledger, session)

    assert ledger.drafts.drop(draft)
    assert not ledger.drafts.drop(draft)

    assert ledger.drafts.get(session.key, 1) is None
    assert ledger.messages.append(session.key, 1, [said()])[0].position == 1
    with pytest.raises(Conflict) as caught:
        ledger.drafts.finish(draft, [complete(1)])
    assert caught.value.stored is None


# Parts


def test_a_part_written_again_is_nothing_and_one_out_of_order_is_refused(ledger: Ledger) -> None:
    """The number says which it is, so a lost answer can be asked for again."""
    session = new_session(ledger)
    draft = recording(ledger, session, 2)

    assert add_part(ledger, draft, 2, part("again"))
    for wrong in (0, 1, 4):
        with pytest.raises(InvalidCall):
            add_part(ledger, draft, wrong, part("x"))

    found = ledger.drafts.get(session.key, 1)
    assert found is not None
    assert found.parts == (part("1 "), part("2 "))


def test_parts_of_which_some_are_there_are_written_once(ledger: Ledger) -> None:
    """An answer was lost, and more has arrived until it is asked for again."""
    session = new_session(ledger)
    draft = recording(ledger, session, 2)
    every = tuple(part(f"{n} ") for n in (1, 2, 3, 4))

    for parts in (every[:2], every, every):
        assert ledger.drafts.write_parts([NewParts(draft, 1, parts)]) == [True]

    found = ledger.drafts.get(session.key, 1)
    assert found is not None
    assert found.parts == every
    assert ledger.drafts.finish(draft, [complete(4)])[0].position == 1


def test_what_arrived_of_several_drafts_is_written_in_one_step(ledger: Ledger) -> None:
    """Each learns whether it was its own; where one is refused, nothing is written of any."""
    sessions = [new_session(ledger) for _ in range(3)]
    drafts = [recording(ledger, session) for session in sessions]
    ledger.messages.append(sessions[1].key, 1, [said("me!")], draft_message=resolved)

    def parts() -> list[int]:
        found = [ledger.drafts.get(session.key, 1) for session in sessions]
        return [-1 if one is None else len(one.parts) for one in found]

    growths = [NewParts(draft, 1, (part("1 "), part("2 "))) for draft in drafts]
    with pytest.raises(InvalidCall):
        ledger.drafts.write_parts([*growths, NewParts(drafts[2], 9, (part("9 "),))])
    assert parts() == [0, -1, 0]

    assert ledger.drafts.write_parts(growths) == [True, False, True]
    assert parts() == [2, -1, 2]


def test_any_string_is_a_part_once_it_is_json(ledger: Ledger) -> None:
    """NUL too; bare it is refused, and nothing is written."""
    session = new_session(ledger)
    draft = recording(ledger, session)
    every = "\0 \U0001f600"

    assert add_part(ledger, draft, 1, part(every))
    with pytest.raises(InvalidCall):
        add_part(ledger, draft, 2, "\0")

    ledger.messages.append(session.key, 1, [said("x")], draft_message=resolved)
    assert texts(ledger, session) == [every, "x"]


# Another ends it


def test_an_append_of_another_writer_ends_it_as_interrupted(ledger: Ledger) -> None:
    """First what has arrived, then the message; the recorder learns, also at its end."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("q")])
    draft = recording(
        ledger, session, 2, idempotency_key="k", origin=ORIGIN, request_facts={"p": 1}
    )

    (row,) = ledger.messages.append(
        session.key, 1, [said("me!")], idempotency_key="m", draft_message=resolved
    )

    assert (row.position, texts(ledger, session)) == (3, ["q", "1 2 ", "me!"])
    ended = ledger.history.get(session.key, 1, 2)
    assert (ended.id, ended.message.status) == (draft.id, "interrupted")
    assert (ended.created_at, ended.message.origin) == (draft.created_at, ORIGIN)
    assert ledger.history.by_idempotency_key(session.key, "k") == [ended]
    assert ledger.views.last_request(session.key, 1) is not None
    assert not add_part(ledger, draft, 3, part("3 "))
    assert not renew(ledger, draft)
    assert not ledger.drafts.drop(draft)
    with pytest.raises(Conflict) as caught:
        ledger.drafts.finish(draft, [complete(3)])
    assert caught.value.stored == [ended]
    assert caught.value.hint
    assert texts(ledger, session) == ["q", "1 2 ", "me!"]
    assert rows_of(ledger, "draft_parts") == 0
    whole(ledger, session.key)


def test_of_a_reply_with_no_part_yet_an_append_leaves_nothing(ledger: Ledger) -> None:
    """The message takes its place."""
    session = new_session(ledger)
    draft = recording(ledger, session)

    assert (
        ledger.messages.append(session.key, 1, [said("x")], draft_message=resolved)[0].position == 1
    )

    assert texts(ledger, session) == ["x"]
    with pytest.raises(Conflict) as caught:
        ledger.drafts.finish(draft, [complete(1)])
    assert caught.value.stored is None


def test_a_second_recording_ends_the_first(ledger: Ledger) -> None:
    """One live draft a branch; the second begins after what came of the first."""
    session = new_session(ledger)
    first = recording(ledger, session, 2)

    second = recording(ledger, session, 1, draft_message=resolved)

    assert (first.position, second.position) == (1, 2)
    assert texts(ledger, session) == ["1 2 "]
    with pytest.raises(Conflict):
        ledger.drafts.finish(first, [complete(3)])
    assert ledger.drafts.finish(second, [complete(1)])[0].position == 2


def test_without_an_answer_to_what_has_arrived_a_draft_is_in_the_way(ledger: Ledger) -> None:
    """A conflict with a hint, for an append and for a recording; the draft goes on."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1)

    for verb in (
        lambda: ledger.messages.append(session.key, 1, [said()]),
        lambda: ledger.drafts.begin(session.key, 1),
    ):
        with pytest.raises(Conflict) as caught:
            verb()
        assert caught.value.hint
    assert add_part(ledger, draft, 2, part("2 "))
    assert ledger.drafts.finish(draft, [complete(2)])[0].position == 1


def test_it_can_be_ended_by_itself(ledger: Ledger) -> None:
    """As interrupted, with nothing behind it: no thought of it is left to come."""
    session = new_session(ledger)
    recording(ledger, session, 2)

    for _ in range(2):
        ledger.erasure.erase_session(session.key, only="reasoning", draft_message=resolved)
        assert ledger.drafts.get(session.key, 1) is None

    assert texts(ledger, session) == ["1 2 "]


def test_after_speaks_of_the_message_that_a_draft_becomes(ledger: Ledger) -> None:
    """The one who has not seen it is refused and ends nothing; the one who has, is not."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("q")])
    draft = recording(ledger, session, 2)

    for stale in (0, 1, 3):
        with pytest.raises(Conflict, match="the last message is at 2"):
            ledger.messages.append(session.key, 1, [said("x")], after=stale, draft_message=resolved)
    assert add_part(ledger, draft, 3, part("3 "))

    assert (
        ledger.messages.append(session.key, 1, [said("x")], after=2, draft_message=resolved)[
            0
        ].position
        == 3
    )
    assert texts(ledger, session) == ["q", "1 2 3 ", "x"]


def test_what_has_arrived_is_asked_for_outside_of_any_transaction(ledger: Ledger) -> None:
    """The answer may take its time, and may ask the ledger itself."""
    session = new_session(ledger)
    recording(ledger, session, 1)
    seen: list[DraftRow] = []

    def ask(draft: DraftRow) -> NewMessage | None:
        seen.append(draft)
        other = new_session(ledger)
        ledger.messages.append(other.key, 1, [said()])
        assert ledger.drafts.get(session.key, 1) == draft
        return resolved(draft)

    ledger.messages.append(session.key, 1, [said("x")], draft_message=ask)

    assert texts(ledger, session) == ["1 ", "x"]
    assert [draft.expired for draft in seen] == [True]


def test_an_append_that_dies_between_taking_it_and_ending_it_loses_nothing(
    ledger: Ledger,
) -> None:
    """The draft stays, closed to its recorder, and the next append ends it."""
    session = new_session(ledger)
    draft = recording(ledger, session, 2)

    def dies(_: DraftRow) -> NewMessage:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.messages.append(session.key, 1, [said("x")], draft_message=dies)
    found = ledger.drafts.get(session.key, 1)

    assert found is not None
    assert (found.expired, len(found.parts)) == (True, 2)
    assert not add_part(ledger, draft, 3, part("3 "))
    ledger.messages.append(session.key, 1, [said("y")], draft_message=resolved)
    assert texts(ledger, session) == ["1 2 ", "y"]


def test_a_recorder_that_ends_first_wins(ledger: Ledger) -> None:
    """Between being taken away and being ended it may still end itself, whole."""
    session = new_session(ledger)
    draft = recording(ledger, session, 2)

    def late(taken: DraftRow) -> NewMessage | None:
        ledger.drafts.finish(draft, [complete(3)])
        return resolved(taken)

    ledger.messages.append(session.key, 1, [said("x")], draft_message=late)

    assert texts(ledger, session) == ["1 2 3 ", "x"]


# The key of the attempt


def test_the_key_of_a_reply_that_was_stored_cannot_begin_another(ledger: Ledger) -> None:
    """The conflict carries the first result."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1, idempotency_key="k")
    (row,) = ledger.drafts.finish(draft, [complete(1)])

    with pytest.raises(Conflict) as caught:
        ledger.drafts.begin(session.key, 1, idempotency_key="k", draft_message=resolved)

    assert caught.value.stored == [replace(row, is_new=False)]
    assert ledger.drafts.get(session.key, 1) is None


def test_the_same_attempt_twice_at_once_leaves_the_first_alone(ledger: Ledger) -> None:
    """On this branch and on another; an append under its key is refused as well."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("q")])
    fork = ledger.branches.fork(session.key, 1, 2)
    draft = recording(ledger, session, 1, idempotency_key="k")

    for branch in (1, fork):
        with pytest.raises(Conflict):
            ledger.drafts.begin(session.key, branch, idempotency_key="k", draft_message=resolved)
    with pytest.raises(Conflict):
        ledger.messages.append(
            session.key, 1, [said()], idempotency_key="k", draft_message=resolved
        )

    assert add_part(ledger, draft, 2, part("2 "))
    assert ledger.drafts.finish(draft, [complete(2)])[0].is_new


def test_a_key_that_was_used_meanwhile_does_not_hold_the_draft(ledger: Ledger) -> None:
    """The recorder learns what stands under it; what it had is kept without the name."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("q")])
    fork = ledger.branches.fork(session.key, 1, 2)
    draft = recording(ledger, session, 2, idempotency_key="k")
    (other,) = ledger.messages.append(session.key, fork, [said("first")], idempotency_key="k")

    with pytest.raises(Conflict) as caught:
        ledger.drafts.finish(draft, [complete(2)])
    ledger.messages.append(session.key, 1, [said("x")], draft_message=resolved)

    assert caught.value.stored == [replace(other, is_new=False)]
    assert texts(ledger, session) == ["q", "1 2 ", "x"]


# Around it


def test_a_draft_is_its_branchs_own(ledger: Ledger) -> None:
    """A fork has none, may have one of its own, and may be made where the draft stands."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("q")])
    draft = recording(ledger, session, 1)

    fork = ledger.branches.fork(session.key, 1, 2)
    beside = ledger.drafts.begin(session.key, fork)

    assert add_part(ledger, beside, 1, part("beside"))
    assert ledger.drafts.finish(draft, [complete(1)])[0].position == 2
    assert ledger.drafts.finish(beside, [complete(2)])[0].position == 2
    assert texts(ledger, session, fork) == ["q", "1 2 "]


def test_a_draft_of_a_session_that_was_erased_is_over(ledger: Ledger) -> None:
    """Parts are refused quietly; at its end the recorder learns that there is no session."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1, origin=ORIGIN)
    ledger.database.write(
        lambda connection: driver(connection).execute(
            f"DELETE FROM sessions WHERE session_key = {session.key}"  # noqa: S608
        )
    )

    assert not add_part(ledger, draft, 2, part("2 "))
    assert not renew(ledger, draft)
    assert not ledger.drafts.drop(draft)
    with pytest.raises(NotFound):
        ledger.drafts.finish(draft, [answered(origin=ORIGIN)])
    with pytest.raises(NotFound):
        ledger.drafts.get(session.key, 1)
    with pytest.raises(NotFound):
        ledger.drafts.begin(session.key, 1)
    assert rows_of(ledger, "drafts") == rows_of(ledger, "draft_parts") == 0


@pytest.mark.parametrize("branch", [0, -1, 2, 10**30])
def test_a_branch_that_is_not_there_has_no_draft(ledger: Ledger, branch: int) -> None:
    """And cannot begin one."""
    session = new_session(ledger)

    with pytest.raises(NotFound):
        ledger.drafts.begin(session.key, branch)
    with pytest.raises(NotFound):
        ledger.drafts.get(session.key, branch)


def test_what_cannot_end_a_draft_leaves_it_as_it_is(ledger: Ledger) -> None:
    """No message, counts of other blocks, one that is still streaming."""
    session = new_session(ledger)
    draft = recording(ledger, session, 1)
    wrong: list[list[NewMessage]] = [
        [],
        [NewMessage(assistant(ThinkingBlock(thought="x")), Counts())],
        [NewMessage(assistant("x", status="streaming"), Counts(visible=1))],
    ]

    for entries in wrong:
        with pytest.raises(InvalidCall):
            ledger.drafts.finish(draft, entries)

    assert add_part(ledger, draft, 2, part("2 "))
    assert ledger.drafts.finish(draft, [complete(2)])[0].position == 1


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM draft_parts WHERE part = 1",
        "DELETE FROM drafts",
        "UPDATE drafts SET id = 'x'",
        "UPDATE drafts SET header = '{'",
        "UPDATE drafts SET header = '[]'",
    ],
)
def test_a_damaged_draft_is_raised_and_never_skipped(ledger: Ledger, damage: str) -> None:
    """Read, or met by an append."""
    session = new_session(ledger)
    recording(ledger, session, 2)
    ledger.database.write(lambda connection: driver(connection).execute(damage))

    with pytest.raises(CorruptRow):
        ledger.drafts.get(session.key, 1)
    with pytest.raises(CorruptRow):
        ledger.messages.append(session.key, 1, [said()], draft_message=resolved)
