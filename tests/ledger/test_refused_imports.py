"""Imports that are refused: the line is named, and nothing of its session is written."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reasoning_store.conversation.errors import Conflict, InvalidCall, ReasoningStoreError
from reasoning_store.ledger import compactions
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.transfer import load
from reasoning_store.ledger.view_records import NewCompaction
from tests.properties import each

from .exporting import every
from .histories import answered, new_session, said
from .lines_by_hand import ASKED, CLEARED, REPLIED, SAID, SUMMED, lines_with

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
    (lines_with({**SAID, "counts": {"visible": -1}}), 3, "counts: a number of tokens"),
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
    (lines_with({"type": "branch", "number": 1, "insteadOf": 2}), 3, "insteadOf"),
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
            json.dumps({"type": "reasoning-store", "version": 2}),
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
