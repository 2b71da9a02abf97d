"""Export and import: everything comes along, once, from any engine to any engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Counts,
    Message,
    Origin,
    TextBlock,
    ThinkingBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.errors import (
    Conflict,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
)
from reasoning_store.ledger import compactions
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import (
    DraftRow,
    Imported,
    NewMessage,
    ReasoningUsed,
    SessionRow,
)
from reasoning_store.ledger.rows.keys import session_key
from reasoning_store.ledger.transfer import load
from reasoning_store.ledger.view_records import NewCompaction, SummaryRow
from tests.properties import each, examples

from .compacting import compact
from .histories import (
    add_part,
    answered,
    answering,
    any_text,
    calling,
    entries,
    new_session,
    note,
    part,
    resolved,
    said,
)
from .opening import never_rewritten
from .whole import whole


@pytest.fixture(params=["sqlite", "postgres"])
def other(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path
) -> Iterator[Ledger]:
    """An open ledger next to the first, on each engine."""
    if request.param == "sqlite":
        path = tmp_path / "other.db"
        path.write_bytes(sqlite_template.read_bytes())
        url = f"sqlite:///{path}"
    else:
        create: Callable[..., Any] = request.getfixturevalue("create_database")
        made = create(request.getfixturevalue("postgres_template"))
        url = made.render_as_string(hide_password=False)
    with Ledger.open(url) as opened:
        yield opened


def every(ledger: Ledger, session: SessionRow | None = None) -> list[str]:
    return list(ledger.transfer.export_lines(None if session is None else session.key))


Step = tuple[str, int, Any]
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.integers(0, 3),
            st.tuples(
                st.lists(
                    entries() | st.sampled_from([said(), calling("a"), answering("a")]),
                    min_size=1,
                    max_size=4,
                ),
                st.none() | any_text,
                st.integers(-5, 5),
            ),
        ),
        st.tuples(st.just("fork"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("erase"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("reasoning"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("compact"), st.integers(0, 3), st.integers(0, 12)),
        st.tuples(st.just("undo"), st.integers(0, 3), st.integers(1, 3)),
        st.tuples(st.just("draft"), st.integers(0, 3), any_text),
        st.tuples(st.just("set"), st.just(0), any_text),
    ),
    min_size=1,
    max_size=10,
)


def take(ledger: Ledger, session: SessionRow, branches: list[int], step: Step) -> None:
    """One step in the life of a session, where it is possible."""
    kind, which, what = step
    key, branch = session.key, branches[which % len(branches)]
    head = ledger.branches.head(key, branch)
    if kind == "append":
        batch, idempotency_key, at = what
        ledger.messages.append(
            key,
            branch,
            batch,
            idempotency_key=idempotency_key,
            created_at=at,
            resolve=resolved,
        )
    elif kind == "fork":
        branches.append(ledger.branches.fork(key, branch, min(what, head.position) + 1))
    elif kind == "compact" and head.turn_start:
        starts = [
            row.position
            for row in ledger.history.read(key, branch)
            if row.message.starts_turn and row.position < head.turn_start
        ]
        if starts:
            compact(ledger, key, branch, starts[what % len(starts)], head.turn_start - 1, said("s"))
    elif kind == "undo":
        ledger.compactions.undo(key, branch, what)
    elif kind == "draft":
        if ledger.drafts.get(key, branch) is None:
            draft = ledger.drafts.begin(key, branch, request_facts={"x": what})
            note(ledger, draft, {what: 1})
            add_part(ledger, draft, 1, part(what))
    elif kind == "set":
        ledger.sessions.rename(key, what)
        ledger.sessions.set_metadata(key, {what: [what]})
        ledger.sessions.change_settings(key, {"x": what})
        ledger.budgets.remember(key, what)
        ledger.branches.activate(key, branches[-1])
    elif head.position:
        only: Any = None if kind == "erase" else "reasoning"
        ledger.erasure.erase_message(key, branch, what % head.position + 1, only=only)


@examples(40)
@given(steps=steps)
def test_what_is_imported_is_what_was_exported(
    ledger: Ledger, other: Ledger, steps: list[Step]
) -> None:
    """Any history, on each engine and from one to the other; and again is nothing."""
    never_rewritten(ledger)
    session = new_session(ledger, title="t")
    branches = [1]
    for step in steps:
        try:
            take(ledger, session, branches, step)
        except (Conflict, NotFound, InvalidCall):
            continue  # a key used twice, a range that cannot be summarized
    exported = every(ledger, session)

    done = other.transfer.import_lines(exported)

    assert exported == every(other, session)
    assert (done.sessions, done.already) == (1, 0)
    assert other.audit.verify().ok
    for branch in branches:
        assert ledger.history.read(session.key, branch) == other.history.read(session.key, branch)
        assert ledger.views.view_totals(session.key, branch) == other.views.view_totals(
            session.key, branch
        )
        assert ledger.views.view(session.key, branch) == other.views.view(session.key, branch)
    assert other.transfer.import_lines(exported) == Imported(sessions=1, already=done.messages)
    assert exported == every(other, session)


def rich(ledger: Ledger, owners: int = 2) -> list[SessionRow]:
    """A few sessions with a bit of everything."""
    made = []
    for n in range(owners):
        owner = f"o{n}\u00e9"
        ledger.profiles.set(owner, f"p{n}", {"x": n})
        for name in ("a", "b"):
            session = ledger.sessions.create(
                owner, name, encoding="o200k_base", title="t\u00e9", metadata={"m": [1.5]}
            )
            key = session.key
            ledger.sessions.use_profile(key, f"p{n}")
            reply = replace(answered(origin=Origin(model="m")), request_facts={"x": 1})
            ledger.messages.append(
                key, 1, [said(), reply, said(), calling("c"), answering("c"), said()]
            )
            ledger.messages.append(key, 1, [answered(), said()], idempotency_key="k")
            fork = ledger.branches.fork(key, 1, 5)
            ledger.messages.append(key, fork, [answered("x" * 3000, "\0")])
            ledger.branches.fork(key, fork, 2)
            compact(ledger, key, 1, 1, 2, said("first"))
            compact(ledger, key, 1, 1, 5, said("both"))
            ledger.erasure.erase_message(key, 1, 8)
            draft = ledger.drafts.begin(key, fork)
            add_part(ledger, draft, 1, part("so far"))
            made.append(session)
    ledger.sessions.archive(made[-1].key)
    return made


def test_a_whole_store_moves(ledger: Ledger, other: Ledger) -> None:
    """Sessions of every owner, archived ones and settings profiles."""
    sessions = rich(ledger)
    exported = every(ledger)

    done = other.transfer.import_lines(exported)

    assert exported == every(other)
    assert (done.sessions, done.messages, done.skipped) == (4, 36, ())
    assert other.audit.verify().ok
    for session in sessions:
        assert ledger.sessions.get(session.owner, session.id) == other.sessions.get(
            session.owner, session.id
        )
        assert ledger.budgets.get(session.key) == other.budgets.get(session.key)
    assert ledger.profiles.all_of("o1\u00e9") == other.profiles.all_of("o1\u00e9")
    with pytest.raises(Conflict, match="erased"):
        other.messages.append(sessions[0].key, 1, [said()], idempotency_key="k")


def test_an_owners_part_is_his_alone(ledger: Ledger, other: Ledger) -> None:
    """Exported by owner; imported for whom the caller says, whatever the lines say."""
    rich(ledger)
    his = list(ledger.transfer.export_lines(owner="o1\u00e9"))

    assert ledger.transfer.import_lines(his, owner="me").sessions == 2
    assert other.transfer.import_lines(his, owner="me").sessions == 2

    mine = list(other.transfer.export_lines(owner="me"))
    assert mine == list(ledger.transfer.export_lines(owner="me"))
    assert {json.loads(line)["owner"] for line in mine if '"owner"' in line} == {"me"}
    assert other.sessions.page("o1\u00e9").items == []
    assert [row.name for row in other.profiles.all_of("me")] == ["p1"]
    assert every(ledger, None) != mine
    with pytest.raises(NotFound):
        list(ledger.transfer.export_lines(5))


def test_an_import_goes_on_where_it_stopped(
    ledger: Ledger, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a malformed line at any place: the error names it, and again adds nothing twice."""
    monkeypatch.setattr(load, "_AT_ONCE", 2)
    rich(ledger, 1)
    exported = every(ledger)

    for place in range(len(exported)):
        broken = [*exported[:place], exported[place][:-3] + "\n", *exported[place + 1 :]]
        with pytest.raises(InvalidCall, match=f"^line {place + 1}: ") as caught:
            other.transfer.import_lines(broken)
        assert "Is 91" not in str(caught.value)
        with pytest.raises(InvalidCall, match="stop before their end"):
            other.transfer.import_lines(exported[:place])
    assert other.transfer.import_lines(exported).sessions == 2

    assert exported == every(other)
    assert other.audit.verify().ok


def test_a_session_is_in_no_list_before_it_is_whole(ledger: Ledger, other: Ledger) -> None:
    """No one takes the half of it for the conversation."""
    session = rich(ledger, 1)[0]
    exported = every(ledger, session)
    listed = []

    def watched() -> Iterator[str]:
        for line in exported:
            yield line
            listed.append(
                [row.id for row in other.sessions.page(session.owner).items]
                + [row.id for row in other.sessions.page(session.owner, archived=True).items]
            )

    other.transfer.import_lines(watched())

    assert listed == [[]] * (len(exported) - 2) + [[session.id]] * 2


KILLED = """
import os, signal, sys
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.transfer import load
load._AT_ONCE = 3
def lines():
    for number, line in enumerate(open(sys.argv[2], encoding="utf-8", newline="\\n"), 1):
        if number == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield line
with Ledger.open(sys.argv[1]) as ledger:
    ledger.transfer.import_lines(lines())
"""


def test_a_killed_import_is_run_again(ledger: Ledger, tmp_path: Path) -> None:
    """As a file, as it is; what is there is not written twice."""
    rich(ledger)
    exported = every(ledger)
    target = tmp_path / "target.db"
    file = tmp_path / "export.jsonl"
    with file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(exported)

    for place in (3, 10, 20, 40):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, f"sqlite:///{target}", str(file), str(place)],
            timeout=120,
        )
        assert killed.returncode == -signal.SIGKILL
    with Ledger.open(f"sqlite:///{target}") as fresh, file.open("rb") as lines:
        done = fresh.transfer.import_lines(lines)
        assert done.sessions == 4
        assert done.already > 0
        assert exported == every(fresh)


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
    ledger.messages.append(session.key, 2, [said("since")], resolve=resolved)
    newest = ledger.branches.fork(session.key, 1, 9)
    ledger.messages.append(session.key, newest, [said("beside")])

    done = other.transfer.import_lines(every(ledger))

    assert done.messages == 4
    for branch in (1, 2, newest):
        assert ledger.history.read(session.key, branch) == other.history.read(session.key, branch)
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
    assert other.branches.head(session.key, 1).visible == 8 * 7
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


def test_a_masker_filters_an_import(ledger: Ledger, other: Ledger) -> None:
    """What it changes is counted anew; what it leaves keeps its counts; drafts too."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("my secret"), said("hello")])
    draft = ledger.drafts.begin(session.key, 1)
    add_part(ledger, draft, 1, part("a secret"))
    exported = every(ledger, session)

    def mask(message: Message) -> Message:
        blocks = tuple(
            TextBlock(text=block.text.replace("secret", "***"))
            for block in message.blocks
            if isinstance(block, TextBlock)
        )
        return replace(message, blocks=blocks)

    with pytest.raises(InvalidCall, match="counts"):
        other.transfer.import_lines(exported, mask=mask)
    with pytest.raises(InvalidCall, match="masked"):
        other.transfer.import_lines(exported, mask=mask, count=lambda *_: Counts(visible=1))
    other.transfer.import_lines(
        exported,
        mask=mask,
        count=lambda *_: Counts(visible=1),
        mask_parts=lambda parts: [text.replace("secret", "***") for text in parts],
    )

    assert [row.message.text for row in other.history.read(session.key, 1)] == ["my ***", "hello"]
    assert [row.counts.visible for row in other.history.read(session.key, 1)] == [1, 5]
    found = other.drafts.get(session.key, 1)
    assert found is not None
    assert "secret" not in "".join(found.parts)


def test_lines_can_be_written_by_hand(ledger: Ledger) -> None:
    """Ids, positions, times and counts are made where they are left out."""
    written = [
        {"type": "reasoning-store", "version": 1},
        {"type": "session", "id": "hand", "encoding": "o200k_base"},
        {"type": "message", "message": codec.message_to_json(user("Is 91 prime?"))},
        {"type": "message", "message": codec.message_to_json(assistant("No."))},
        {"type": "session_end", "messages": 2},
        {"type": "end", "sessions": 1},
    ]
    text = "\n\n".join(map(json.dumps, written))

    done = ledger.transfer.import_lines(text.split("\n"), count=lambda *_: Counts(visible=3))

    session = ledger.sessions.get("", "hand")
    assert done == Imported(sessions=1, messages=2)
    assert [row.message for row in ledger.history.read(session.key, 1)] == [
        user("Is 91 prime?"),
        assistant("No."),
    ]
    assert ledger.audit.verify().ok
    again = ledger.transfer.import_lines(text.split("\n"), count=lambda *_: Counts(visible=3))
    assert again == Imported(sessions=1, already=2)


def test_a_refused_import_leaves_no_half_of_a_batch(ledger: Ledger, other: Ledger) -> None:
    """In a session that was there, too: what has one key is there as a whole or not at all."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("Hello."), answered()])
    other.transfer.import_lines(every(ledger))
    ledger.messages.append(session.key, 1, [said(str(n)) for n in range(300)], idempotency_key="k")
    lines = list(every(ledger))
    last = next(n for n, line in enumerate(lines) if json.loads(line)["type"] == "session_end") - 1
    lines[last] = json.dumps(json.loads(lines[last]) | {"position": 1})

    with pytest.raises(InvalidCall, match=f"line {last + 1}: position"):
        other.transfer.import_lines(lines)

    assert len(other.history.read(session.key, 1)) == 2
    other.transfer.import_lines(every(ledger))
    assert every(other) == every(ledger)


def lines_with(*changed: Any) -> list[str]:
    head = [
        {"type": "reasoning-store", "version": 1},
        {"type": "session", "id": "s", "encoding": "x"},
    ]
    return [json.dumps(line) for line in [*head, *changed]]


SAID = {"type": "message", "message": {"role": "user", "blocks": []}, "counts": {}}
OUT_OF_PLACE: list[tuple[list[str], int, str]] = [
    (["{}"], 1, "type"),
    ([json.dumps(SAID)], 1, "does not say that this is an export"),
    ([json.dumps({"type": "reasoning-store", "version": 3})], 1, "version"),
    (lines_with({"type": "session", "id": "t", "encoding": "x"}), 3, "not ended"),
    (lines_with({"type": "end", "sessions": 1}), 3, "not ended"),
    (lines_with({"type": "session_end", "messages": 1}), 3, "1 were to come, 0 did"),
    (lines_with(SAID, {"type": "session_end", "messages": 0}), 4, "0 were to come, 1 did"),
    (
        lines_with({"type": "session_end", "messages": 0}, {"type": "end", "sessions": 2}),
        4,
        "2 were to come, 1 did",
    ),
    (lines_with({"type": "session_end", "messages": 0}, SAID), 4, "no session was begun"),
    (lines_with({**SAID, "position": 2}), 3, "position: is not 1"),
    (lines_with({**SAID, "branch": 2}), 3, "branch: has no line"),
    (lines_with({**SAID, "batch": 2}), 3, "repeat, batch"),
    (lines_with({**SAID, "repeat": "a" * 32, "batch": 0}), 3, "batch"),
    (
        lines_with(
            {**SAID, "repeat": "a" * 32, "batch": 3}, SAID, {"type": "session_end", "messages": 2}
        ),
        3,
        "covers messages that did not come",
    ),
    (
        lines_with(
            {**SAID, "repeat": "a" * 32, "batch": 4},
            SAID,
            {"type": "branch", "number": 2, "parent": 1, "first": 2},
            SAID,
        ),
        3,
        "covers messages that did not come",
    ),
    (
        lines_with(
            {**SAID, "repeat": "a" * 32, "batch": 2}, {**SAID, "repeat": "b" * 32, "batch": 1}
        ),
        4,
        "among the messages of another",
    ),
    (lines_with({**SAID, "counts": {"thinking": [1]}}), 3, "one number for each thinking"),
    (lines_with({**SAID, "message": {"role": "secret"}}), 3, "role"),
    (lines_with({**SAID, "message": {"role": "user", "status": "streaming"}}), 3, "streaming"),
    (
        lines_with(
            {
                **SAID,
                "message": {"role": "user", "blocks": [{"type": "thinking", "thought": "secret"}]},
                "counts": {"thinking": [1]},
            }
        ),
        3,
        "only a model thinks",
    ),
    (
        lines_with(
            {
                **SAID,
                "message": {
                    "role": "user",
                    "status": "erased",
                    "blocks": [{"type": "text", "text": "secret"}],
                },
            }
        ),
        3,
        "is erased and still has content",
    ),
    (lines_with({**SAID, "id": "\0secret"}), 3, "id"),
    (lines_with({"type": "branch", "number": 2}), 3, "branch"),
    (lines_with({"type": "branch", "number": 2, "parent": 1, "first": 5}), 3, "position"),
    (lines_with({"type": "branch", "number": 9, "parent": 1, "first": 1}), 3, "next branch is"),
    (
        lines_with({"type": "branch", "number": 1, "nextCompaction": 2**31 - 1}),
        3,
        "nextCompaction: must be",
    ),
    (
        lines_with(
            {
                "type": "compaction",
                "branch": 1,
                "number": 1,
                "first": 1,
                "last": 1,
                "message": {"role": "assistant", "blocks": [{"type": "text", "text": "secret"}]},
                "counts": {},
            }
        ),
        3,
        "summary",
    ),
    (
        lines_with(
            {
                "type": "draft",
                "branch": 1,
                "id": "d",
                "origin": {"secret": 1},
                "parts": [],
                "createdAt": 1,
            }
        ),
        3,
        "origin",
    ),
    (
        lines_with({"type": "draft", "branch": 2, "id": "d", "parts": [], "createdAt": 1}),
        3,
        "has no line of its own",
    ),
    (
        lines_with({"type": "draft", "branch": 1, "id": "d", "parts": ["\0"], "createdAt": 1}),
        3,
        "parts",
    ),
    (
        [
            json.dumps({"type": "reasoning-store", "version": 1}),
            json.dumps({"type": "session", "id": "s" * 2000, "encoding": "x"}),
        ],
        2,
        "a session id is longer",
    ),
]


@each("given_, number, says", OUT_OF_PLACE)
def test_a_line_that_does_not_fit_is_named(
    ledger: Ledger, given_: list[str], number: int, says: str
) -> None:
    """By its number; nothing of its session is written."""
    count = sum(json.loads(line).get("type") == "message" for line in given_)
    end = json.dumps({"type": "session_end", "messages": count})

    with pytest.raises(ReasoningStoreError) as caught:
        ledger.transfer.import_lines([*given_, end])

    assert str(caught.value).startswith(f"line {number}: ")
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)
    assert isinstance(caught.value, (InvalidCall, Conflict))


SUMMED = {
    "type": "compaction",
    "branch": 1,
    "number": 1,
    "first": 1,
    "last": 2,
    "message": {"role": "user", "blocks": [{"type": "text", "text": "secret"}]},
    "counts": {},
}
CLEARED = {"type": "compaction", "branch": 1, "number": 1, "first": 1, "last": 2, "clears": True}
ASKED = {**SAID, "message": SUMMED["message"]}
REPLIED = {"type": "message", "message": {"role": "assistant", "blocks": []}, "counts": {}}
LIES: dict[str, tuple[list[Any], int, str]] = {
    "overlap": ([SUMMED, {**SUMMED, "number": 2, "last": 4}], 2, "reaches into another"),
    "behind the end": ([{**SUMMED, "last": 9}], 1, "has no such range"),
    "backwards": ([{**SUMMED, "first": 2, "last": 1}], 1, "has no such range"),
    "a clearing's beginning": ([{**CLEARED, "first": 2}], 1, "begins at 1"),
    "within a turn": ([{**SUMMED, "last": 3}], 1, "whole turns"),
    "from within a turn": ([{**SUMMED, "first": 2, "last": 4}], 1, "whole turns"),
    "the open turn": ([{**SUMMED, "first": 5, "last": 6}], 1, "whole turns"),
    "taken along from nowhere": ([{**SUMMED, "last": 3, "copiedFrom": 1}], 1, "whole turns"),
    "superseding nothing": ([{**SUMMED, "supersedes": [7]}], 1, "supersedes what is not"),
    "superseding itself": ([{**SUMMED, "supersedes": [1]}], 1, "supersedes what is not"),
    "superseding a clearing": (
        [{**CLEARED, "supersededBy": 2}, {**SUMMED, "number": 2, "supersedes": [1]}],
        2,
        "supersedes what is not",
    ),
    "superseding what is beside": (
        [
            {**SUMMED, "supersededBy": 2},
            {**SUMMED, "number": 2, "first": 3, "last": 4, "supersedes": [1]},
        ],
        2,
        "supersedes what is not",
    ),
    "superseded, and behind the end": (
        [
            {**SUMMED, "first": 3, "last": 9, "supersededBy": 2},
            {**SUMMED, "number": 2, "last": 4, "supersedes": [1]},
        ],
        1,
        "has no such range",
    ),
    "superseded by nobody": ([{**SUMMED, "supersededBy": 7}], 1, "is not superseded by"),
    "superseded in silence": (
        [SUMMED, {**SUMMED, "number": 2, "last": 4, "supersedes": [1]}],
        1,
        "is not superseded by",
    ),
    "twice": ([SUMMED, SUMMED], 2, "is that of another"),
    "the last number": ([{**SUMMED, "number": 2**31 - 1}], 1, "number: must be"),
    "no such branch": ([{**SUMMED, "branch": 2}], 1, "has no line of its own"),
}


@pytest.mark.parametrize("case", LIES)
def test_a_compaction_that_cannot_stand_so_is_refused_by_its_line(
    ledger: Ledger, case: str
) -> None:
    """Not only what it says: also what it says of the others. The true ones can come again."""
    made, which, says = LIES[case]
    whole = {"type": "session_end", "messages": 6}
    said_ = [ASKED, REPLIED] * 3

    with pytest.raises(InvalidCall) as caught:
        ledger.transfer.import_lines(lines_with(*said_, *made, whole))

    assert str(caught.value).startswith(f"line {8 + which}: ")
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)
    end = {"type": "end", "sessions": 1}
    wide = {**SUMMED, "number": 2, "last": 4, "supersedes": [1]}
    true = [{**SUMMED, "supersededBy": 2}, wide, {**CLEARED, "number": 3}]
    ledger.transfer.import_lines(lines_with(*said_, *true, whole, end))
    assert ledger.audit.verify().ok


WRONG: dict[str, list[Any]] = {
    "a line": [{"type": "message", "message": 5}],
    "a branch": [{"type": "branch", "number": 7, "parent": 1, "first": 1}],
    "the end": [{"type": "session_end", "messages": 9}],
    "a compaction": [
        {"type": "branch", "number": 2, "parent": 1, "first": 2},
        {"type": "draft", "branch": 2, "id": "d", "parts": ["[]"], "createdAt": 1},
        {**SUMMED, "last": 1},
        {"type": "session_end", "messages": 2},
    ],
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_lines_leave_nothing_of_a_session_that_they_began(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """The right ones may say something else from the first message on."""
    monkeypatch.setattr(load, "_AT_ONCE", 1)
    end = [{"type": "session_end", "messages": 1}, {"type": "end", "sessions": 1}]

    with pytest.raises(ReasoningStoreError):
        ledger.transfer.import_lines(lines_with(ASKED, REPLIED, *WRONG[case]))

    assert not [line for line in every(ledger) if json.loads(line)["type"] == "session"]
    assert ledger.transfer.import_lines(lines_with(REPLIED, *end)).messages == 1
    assert ledger.audit.verify().ok


def test_a_session_that_is_left_out_was_not_begun(ledger: Ledger) -> None:
    """The others come."""
    first = lines_with(ASKED, *WRONG["a branch"], {"type": "session_end", "messages": 1})
    others = [
        {"type": "session", "id": "second", "encoding": "o200k_base"},
        {"type": "session_end", "messages": 0},
        {"type": "end", "sessions": 2},
    ]

    done = ledger.transfer.import_lines([*first, *map(json.dumps, others)], on_conflict="skip")

    assert (done.skipped, done.sessions) == (("s",), 1)
    left = [json.loads(line) for line in every(ledger)]
    assert [line["id"] for line in left if line["type"] == "session"] == ["second"]


@pytest.mark.parametrize("name", ["reported", "counted", "unreported"])
def test_a_session_that_used_something_else_than_its_messages_is_refused(
    ledger: Ledger, other: Ledger, name: str
) -> None:
    """By its own line; the true one can come again."""
    ledger.messages.append(new_session(ledger).key, 1, [said(), answered()])
    true = every(ledger)
    lie = {"reported": 0, "counted": 0, "unreported": 0, **json.loads(true[1])}
    lie[name] += 1

    with pytest.raises(InvalidCall, match=f"^line 2: {name}: "):
        other.transfer.import_lines([true[0], json.dumps(lie), *true[2:]])

    assert other.transfer.import_lines(true).sessions == 1
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
        draft.session_key, draft.branch, [said()], resolve=resolved
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


def test_compactions_come_in_one_after_the_other_with_those_that_are_made(ledger: Ledger) -> None:
    """Two that overlap are never both in force, whichever comes first."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [one for _ in range(4) for one in (said(), answered())])
    end = [{"type": "session_end", "messages": 8}, {"type": "end", "sessions": 1}]
    lines = [
        line for line in every(ledger) if json.loads(line)["type"] not in ("session_end", "end")
    ]
    lines += map(json.dumps, [{**SUMMED, "number": 5, "last": 4}, *end])
    made, go_on = threading.Event(), threading.Event()
    wanted = NewCompaction(first=3, last=6, summary=said("here"))

    def work(connection: Any) -> None:
        compactions.compact(connection, session.key, 1, wanted, now=5)
        made.set()
        go_on.wait(120)

    with ThreadPoolExecutor(2) as threads:
        here = threads.submit(ledger.database.write, work)
        assert made.wait(120)
        imported = threads.submit(ledger.transfer.import_lines, lines)
        with pytest.raises(TimeoutError):
            imported.result(0.5)
        go_on.set()
        here.result(120)
        with pytest.raises(Conflict, match="other compactions are there"):
            imported.result(120)

    assert ledger.audit.verify().ok


def test_an_export_goes_on_while_others_write(ledger: Ledger, other: Ledger) -> None:
    """What comes is each session as it was when its turn came, and imports whole."""
    sessions = [new_session(ledger) for _ in range(3)]
    stop = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            while not stop.is_set():
                for session in sessions:
                    ledger.messages.append(session.key, 1, [said(), calling("c"), answering("c")])
                    ledger.branches.fork(session.key, 1, 2)
        except BaseException as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        exports = [every(ledger) for _ in range(6)]
    finally:
        stop.set()
        writer.join()

    assert failed == []
    for exported in exports:
        other.transfer.import_lines(exported)
        assert other.audit.verify().ok
    for session in sessions:
        mine = [row.digest for row in ledger.history.read(session.key, 1)]
        theirs = [row.digest for row in other.history.read(session.key, 1)]
        assert theirs == mine[: len(theirs)]


def test_no_transaction_is_open_between_two_lines(ledger: Ledger) -> None:
    """The one who takes the lines may take their time, and write meanwhile."""
    sessions = rich(ledger)
    lines = ledger.transfer.export_lines()
    taken = [next(lines) for _ in range(6)]

    ledger.messages.append(sessions[0].key, 1, [said("meanwhile")])
    ledger.erasure.erase_session(sessions[0].key)
    ledger.erasure.erase_session(sessions[2].key)
    taken += list(lines)

    assert json.loads(taken[-1])["type"] == "end"


@pytest.mark.parametrize("position", [2, 4], ids=["first of its range", "inside its range"])
def test_the_messages_and_summaries_of_an_export_are_of_one_moment(
    ledger: Ledger, other: Ledger, position: int
) -> None:
    """Whatever is erased while its lines are taken, it can be imported and is whole."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said() if n % 2 else answered() for n in range(8)])
    compact(ledger, session.key, 1, 2, 5, said("They spoke."))
    before = every(ledger, session)
    lines = ledger.transfer.export_lines(session.key)
    taken = [next(lines) for _ in range(3)]

    ledger.erasure.erase_message(session.key, 1, position)
    taken += list(lines)

    assert taken == before
    other.transfer.import_lines(taken)
    assert other.audit.verify().ok


def test_a_session_made_again_while_it_is_exported_is_exported_as_it_was(ledger: Ledger) -> None:
    """No line of the new one is among those of the old one, and the sessions after it come."""
    sessions = sorted([new_session(ledger) for _ in range(2)], key=lambda one: one.key)
    for one in sessions:
        ledger.messages.append(one.key, 1, [said("old")] * 3)
    before = every(ledger)
    lines = ledger.transfer.export_lines()
    taken = [next(lines) for _ in range(4)]
    ledger.erasure.erase_session(sessions[0].key)
    again = ledger.sessions.create(sessions[0].owner, sessions[0].id, encoding="o200k_base")
    ledger.messages.append(again.key, 1, [said("new")])

    assert taken + list(lines) == before


def test_importing_in_two_processes_at_once_is_one_import(url: str, tmp_path: Path) -> None:
    """Someone started it twice."""
    file = tmp_path / "export.jsonl"
    with Ledger.open("sqlite://") as source:
        session = new_session(source)
        for _ in range(20):
            source.messages.append(session.key, 1, [said(), answered()] * 20)
        exported = every(source)
        file.write_text("".join(exported), "utf-8")
    program = (
        "import sys\n"
        "from reasoning_store.conversation.errors import Conflict\n"
        "from reasoning_store.ledger.ledger import Ledger\n"
        "with Ledger.open(sys.argv[1]) as ledger:\n"
        "    for attempt in range(200):\n"
        "        try:\n"
        "            ledger.transfer.import_lines(open(sys.argv[2], encoding='utf-8'))\n"
        "            break\n"
        "        except Conflict:\n"
        "            pass\n"
        "    else:\n"
        "        sys.exit(7)\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, url, str(file)], env={**os.environ})
        for _ in range(2)
    ]

    assert [one.wait(timeout=300) for one in both] == [0, 0]
    with Ledger.open(url) as ledger:
        assert exported == every(ledger)
        whole(ledger, session.key)
