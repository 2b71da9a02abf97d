"""Imports into a store that has some of it already."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reasoning_store.conversation.blocks import Counts, Message, ThinkingBlock, Usage, assistant
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.keys import session_key
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, NewMessage, ReasoningUsed
from reasoning_store.ledger.view_records import SummaryRow

from .compacting import compact
from .exporting import every, rich
from .histories import add_part, answered, new_session, part, resolved, said, stored_messages
from .lines_by_hand import REPLIED, lines_with


def test_different_stored_content_is_a_conflict(ledger: Ledger, other: Ledger) -> None:
    """Named with its line; nothing of that session changes, and it can be left out."""
    sessions = rich(ledger)
    exported = every(ledger)
    theirs = sessions[0]
    mine = other.sessions.create(theirs.owner, theirs.id, encoding="o200k_base")
    other.messages.append(mine.key, 1, [said("another message")])
    before = every(other, mine)

    says = rf"^line \d+: session {re.escape(repr(theirs.id))}: another message is at 1 of branch 1"
    with pytest.raises(Conflict, match=says) as refused:
        other.transfer.import_lines(exported)
    assert "on_conflict skip" in str(refused.value.hint)
    assert before == every(other, mine)
    done = other.transfer.import_lines(exported, on_conflict="skip")

    assert before == every(other, mine)
    assert (done.sessions, done.skipped) == (3, (theirs.id,))
    for session in sessions[1:]:
        assert every(ledger, session) == every(other, session)
    with pytest.raises(InvalidCall):
        other.transfer.import_lines(exported, on_conflict="perhaps")  # type: ignore[arg-type]


def test_new_messages_are_appended_after_the_stored_ones(ledger: Ledger, other: Ledger) -> None:
    """A later export of the same sessions adds what is new, a draft's message in its place."""
    session = rich(ledger, 1)[0]
    other.transfer.import_lines(every(ledger))
    other.sessions.rename(session.key, "my own name for it")
    ledger.messages.append(session.key, 1, [said("since")])
    ledger.messages.append(session.key, 2, [said("since")], draft_message=resolved)
    newest = ledger.branches.fork(session.key, 1, 9)
    ledger.messages.append(session.key, newest, [said("beside")])

    done = other.transfer.import_lines(every(ledger))

    assert done.messages == 4
    for branch in (1, 2, newest):
        assert stored_messages(ledger, session.key, branch) == stored_messages(
            other, session.key, branch
        )
    assert other.sessions.get(session.owner, session.id).title == "my own name for it"
    assert other.audit.verify().ok


def test_what_was_erased_here_is_not_brought_back(ledger: Ledger, other: Ledger) -> None:
    """By an older export: that session is another one now, its summaries too."""
    session = rich(ledger, 1)[0]
    exported = every(ledger)
    other.transfer.import_lines(exported)
    other.erasure.erase_message(session.key, 1, 2)
    before = every(other, session)

    with pytest.raises(Conflict, match="a message was erased at 2 of branch 1"):
        other.transfer.import_lines(exported)

    assert other.transfer.import_lines(exported, on_conflict="skip").skipped == (session.id,)
    assert every(other, session) == before
    assert other.history.get(session.key, 1, 2).message.status == "erased"


def test_another_encoding_is_a_recount(ledger: Ledger, other: Ledger) -> None:
    """Asked for outside of any transaction; without a counter it is refused."""
    session = rich(ledger, 1)[0]
    exported = every(ledger, session)

    def count(message: Message, encoding: str) -> Counts:
        other.sessions.page("u")
        assert encoding == "cl100k_base"
        return Counts(visible=7, thinking=tuple(2 for _ in message.thinking))

    other.sessions.create(session.owner, session.id, encoding="cl100k_base")
    with pytest.raises(InvalidCall, match="counts"):
        other.transfer.import_lines(exported)
    other.transfer.import_lines(exported, count=count)

    assert other.sessions.get(session.owner, session.id).encoding == "cl100k_base"
    rows = stored_messages(other, session.key, 1)
    assert [row.counts.visible for row in rows] == [7] * 8
    made = other.views.compactions(session.key, 1, every=True)
    assert [row.counts.visible for row in made if isinstance(row, SummaryRow)] == [7, 7]
    assert other.audit.verify().ok
    assert other.transfer.import_lines(exported, count=count).messages == 0


def test_what_was_used_is_recounted_with_the_messages(ledger: Ledger, other: Ledger) -> None:
    """Of what is erased only the old number is left, and stays used."""
    session = new_session(ledger)
    reported = NewMessage(
        assistant(ThinkingBlock(thought="t"), usage=Usage(reasoning=7)), Counts(thinking=(9,))
    )
    ledger.messages.append(session.key, 1, [said(), answered(), reported, answered()])
    before = ledger.budgets.get(session.key).thought.counted
    ledger.erasure.erase_message(session.key, 1, 4)
    exported = list(ledger.transfer.export_lines(session.key))

    for _ in range(2):
        other.transfer.import_lines(
            exported,
            mask=lambda it: it if it.status == "erased" else replace(it, metadata={"masked": True}),
            count=lambda message, _: Counts(thinking=tuple(1000 for _ in message.thinking)),
        )

    assert other.budgets.get(session.key).thought == ReasoningUsed(
        reported=7, counted=before // 2 + 1000, unreported=2
    )
    assert other.audit.verify().ok


def test_an_older_export_takes_no_compaction_back(ledger: Ledger, other: Ledger) -> None:
    """What supersedes what follows from all of them, and what was undone stays so."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [one for _ in range(4) for one in (said(), answered())])
    compact(ledger, session.key, 1, 1, 2, said("first"))
    compact(ledger, session.key, 1, 3, 4, said("second"))
    older = every(ledger)
    other.transfer.import_lines(older)
    compact(ledger, session.key, 1, 1, 4, said("both"))
    ledger.compactions.undo(session.key, 1, 3)
    ledger.compactions.undo(session.key, 1, 2)
    compact(ledger, session.key, 1, 1, 6, said("all"))
    newer = every(ledger)

    ledger.transfer.import_lines(older)
    other.transfer.import_lines(newer)

    assert every(ledger) == newer == every(other)
    assert ledger.audit.verify().ok
    assert other.audit.verify().ok


def test_what_was_undone_inside_of_another_is_learnt(ledger: Ledger, other: Ledger) -> None:
    """What it stood for is inside of the one around it, there as here."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [one for _ in range(4) for one in (said(), answered())])
    for last in (2, 4, 6):
        compact(ledger, session.key, 1, 1, last, said(f"to {last}"))
    fork = ledger.branches.fork(session.key, 1, 7)
    ledger.messages.append(session.key, fork, [answered()])
    other.transfer.import_lines(every(ledger))
    ledger.compactions.undo(session.key, fork, 2)

    other.transfer.import_lines(every(ledger))

    assert every(other) == every(ledger)
    assert other.audit.verify().ok


def test_a_summary_comes_along_with_a_fork_that_has_no_message_yet(
    ledger: Ledger, other: Ledger
) -> None:
    """It ends right before the fork's first own position, and nothing stands there."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [one for _ in range(3) for one in (said(), answered())])
    compact(ledger, session.key, 1, 1, 4, said("two turns"))
    ledger.branches.fork(session.key, ledger.branches.fork(session.key, 1, 5), 5)

    other.transfer.import_lines(every(ledger))

    assert every(other) == every(ledger)
    assert other.audit.verify().ok


ENDS: dict[str, Callable[[Ledger, DraftRow], Any]] = {
    "by its recorder": lambda ledger, draft: ledger.drafts.finish(draft, [answered()]),
    "by somebody else": lambda ledger, draft: ledger.messages.append(
        draft.session_key, draft.branch, [said()], draft_message=resolved
    ),
    "without a word": lambda ledger, draft: (
        ledger.drafts.drop(draft),
        ledger.messages.append(draft.session_key, draft.branch, [said()]),
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_older_export_brings_no_draft_back(ledger: Ledger, end: str) -> None:
    """It has become a message here, or the branch has gone on without it."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])
    draft = ledger.drafts.begin(session.key, 1)
    add_part(ledger, draft, 1, part("so far"))
    older = every(ledger)
    ENDS[end](ledger, draft)
    newer = every(ledger)

    ledger.transfer.import_lines(older)

    assert every(ledger) == newer


def test_an_empty_draft_is_not_exported(ledger: Ledger) -> None:
    """It would be ended as nothing; exports that have one bring none."""
    session = new_session(ledger)
    before = every(ledger)
    ledger.drafts.begin(session.key, 1)
    assert every(ledger) == before
    draft = {"type": "draft", "branch": 1, "id": "d", "parts": [], "createdAt": 1}
    end = [{"type": "session_end", "messages": 0}, {"type": "end", "sessions": 1}]

    ledger.transfer.import_lines(lines_with(draft, *end))

    assert ledger.drafts.get(session_key("", "s"), 1) is None


def test_a_draft_in_whose_place_another_came_is_a_conflict(ledger: Ledger, other: Ledger) -> None:
    """A branch has one at a time."""
    session = new_session(ledger)
    other.transfer.import_lines(every(ledger))
    add_part(ledger, ledger.drafts.begin(session.key, 1), 1, part("so far"))
    here = other.drafts.begin(session.key, 1)

    with pytest.raises(Conflict, match="another reply is being recorded"):
        other.transfer.import_lines(every(ledger))

    assert [draft.id for draft in [other.drafts.get(session.key, 1)] if draft] == [here.id]


def test_a_draft_of_the_same_id_as_a_message_is_not_taken(ledger: Ledger) -> None:
    """It would become a second one."""
    reply = {**REPLIED, "id": "d"}
    draft = {"type": "draft", "branch": 1, "id": "d", "parts": ["[]"], "createdAt": 1}
    end = [{"type": "session_end", "messages": 1}, {"type": "end", "sessions": 1}]

    ledger.transfer.import_lines(lines_with(reply, draft, *end))

    assert not [line for line in every(ledger) if json.loads(line)["type"] == "draft"]


def test_compactions_that_are_there_already_are_not_written_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was undone elsewhere since is, and nothing besides."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [one for _ in range(4) for one in (said(), answered())])
    compact(ledger, session.key, 1, 1, 2, said("first"))
    compact(ledger, session.key, 1, 1, 4, said("both"))
    compact(ledger, session.key, 1, 5, 6, said("third"))
    lines = every(ledger)
    undone = [{**json.loads(line), "undoneAt": 5} for line in lines if '"number":3' in line]
    newer = [line for line in lines[:-2] if '"number":3' not in line]
    newer += [*map(json.dumps, undone), *lines[-2:]]
    written: list[Any] = []
    many = Statement.many

    def counting(self: Statement, connection: Any, params: Any) -> None:
        written.extend(params)
        many(self, connection, params)

    monkeypatch.setattr(Statement, "many", counting)
    ledger.transfer.import_lines(lines)
    assert written == []
    ledger.transfer.import_lines(newer)

    assert [(row["this"], row["undone"]) for row in written] == [(3, 5)]
