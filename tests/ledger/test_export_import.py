"""Export and import: everything comes along, once, from any engine to any engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Counts, Message, TextBlock, assistant, user
from reasoning_store.conversation.errors import Conflict, InvalidCall, NotFound
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import Imported, SessionRow
from reasoning_store.ledger.transfer import load
from tests.properties import examples

from .compacting import compact
from .exporting import every, rich
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
    stored_messages,
)
from .opening import never_rewritten
from .whole import narrow, whole

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
    head = ledger.branches.get(key, branch).head
    turn_start = ledger.branches.turn_start(key, branch)
    if kind == "append":
        batch, idempotency_key, at = what
        ledger.messages.append(
            key,
            branch,
            batch,
            idempotency_key=idempotency_key,
            created_at=at,
            draft_message=resolved,
        )
    elif kind == "fork":
        branches.append(ledger.branches.fork(key, branch, min(what, head) + 1))
    elif kind == "compact" and turn_start:
        starts = [
            row.position
            for row in stored_messages(ledger, key, branch)
            if row.message.starts_turn and row.position < turn_start
        ]
        if starts:
            compact(ledger, key, branch, starts[what % len(starts)], turn_start - 1, said("s"))
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
    elif head:
        only: Any = None if kind == "erase" else "reasoning"
        ledger.erasure.erase_message(key, branch, what % head + 1, only=only)


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
        assert stored_messages(ledger, session.key, branch) == stored_messages(
            other, session.key, branch
        )
        assert narrow(ledger, session.key, branch)[1] == narrow(other, session.key, branch)[1]
        assert ledger.views.view(session.key, branch) == other.views.view(session.key, branch)
    assert other.transfer.import_lines(exported) == Imported(sessions=1, already=done.messages)
    assert exported == every(other, session)


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


def test_a_session_that_was_emptied_moves(ledger: Ledger, other: Ledger) -> None:
    """Its branch began later than itself."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("old")])
    ledger.erasure.delete_session(session.key, only="messages")
    ledger.messages.append(session.key, 1, [said("new")])

    other.transfer.import_lines(every(ledger))

    assert every(other) == every(ledger)


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

    assert [row.message.text for row in stored_messages(other, session.key, 1)] == [
        "my ***",
        "hello",
    ]
    assert [row.counts.visible for row in stored_messages(other, session.key, 1)] == [1, 5]
    found = other.drafts.get(session.key, 1)
    assert found is not None
    assert "secret" not in "".join(found.parts)


def test_lines_can_be_written_by_hand(ledger: Ledger) -> None:
    """Ids, positions, times and counts are made where they are left out."""
    written = [
        {"type": "reasoning-store", "version": 2},
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
    assert [row.message for row in stored_messages(ledger, session.key, 1)] == [
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

    assert len(stored_messages(other, session.key, 1)) == 2
    other.transfer.import_lines(every(ledger))
    assert every(other) == every(ledger)


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
        mine = [row.digest for row in stored_messages(ledger, session.key, 1)]
        theirs = [row.digest for row in stored_messages(other, session.key, 1)]
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
