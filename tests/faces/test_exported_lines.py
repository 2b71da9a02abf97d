"""Lines of an export: what comes back, and what is refused by its number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs

from .answering import talk

# Lines


def test_what_is_exported_comes_back_the_same(store: rs.Store) -> None:
    """Opaque payloads and forks too; a second import writes nothing."""
    session = store.session("chat", create=True, title="t\u00e9", metadata={"a": [1]})
    talk(session)
    session.fork(at=2).append(rs.assistant("Yes."))
    lines = list(store.export_lines())

    with rs.Store("sqlite://") as other:
        first = other.import_lines(lines)
        second = other.import_lines(lines)

        assert list(other.export_lines()) == lines
        assert [item.message for item in other.session("chat").history()] == [
            item.message for item in session.history()
        ]
    assert (first.messages, second.messages, second.already) == (3, 0, 3)


def test_a_session_whose_last_turns_were_taken_back_comes_back_the_same(store: rs.Store) -> None:
    """Behind a summary there is nothing left then, on the branch that stands open."""
    session = store.session("chat", create=True)
    for _ in range(4):
        talk(session)
    plan = session.compression(limit=20, threshold=0.5, reserve=1)
    assert plan.to_summarize is not None
    session.compact(plan, summary="They talked.")

    for _ in range(3):
        session.pop_turn()
        lines = list(store.export_lines())
        with rs.Store("sqlite://") as other:
            other.import_lines(lines)
            assert list(other.export_lines()) == lines


def test_one_session_is_exported_alone(store: rs.Store) -> None:
    """By its id, for its owner."""
    talk(store.session("one", create=True))
    talk(store.session("two", create=True))

    exported = [json.loads(line) for line in store.export_lines("two")]

    assert [line["id"] for line in exported if line["type"] == "session"] == ["two"]
    with pytest.raises(rs.NotFound):
        store.for_owner("ann").export_lines("two")


def test_an_owner_exports_and_imports_what_is_his(store: rs.Store) -> None:
    """The store itself moves everybody's."""
    talk(store.for_owner("ann").session("chat", create=True))
    talk(store.for_owner("bob").session("chat", create=True))
    anns = list(store.for_owner("ann").export_lines())

    with rs.Store("sqlite://") as other:
        other.for_owner("eve").import_lines(anns)
        assert len(other.for_owner("eve").sessions().items) == 1
        assert other.for_owner("ann").sessions().items == []
    with rs.Store("sqlite://") as other:
        other.import_lines(store.export_lines())
        assert len(other.for_owner("bob").sessions().items) == 1


def test_a_malformed_line_is_refused_by_its_number(store: rs.Store) -> None:
    """And the same import, mended, goes on."""
    talk(store.session("chat", create=True))
    lines = list(store.export_lines())
    with rs.Store("sqlite://") as other:
        with pytest.raises(rs.InvalidCall, match="line 3: "):
            other.import_lines([*lines[:2], "{not json\n", *lines[2:]])
        assert other.sessions().items == []
        other.import_lines(lines)
        assert list(other.export_lines()) == lines


def lines_of(session: rs.Session) -> list[dict[str, Any]]:
    """A session of two messages, the second of them recorded, as the lines of its export."""
    session.append(rs.user("Hello."), idempotency_key="k")
    request = session.build_request(provider="deepseek", model="deepseek-chat")
    for _ in session.record(
        [{"choices": [{"index": 0, "delta": {"content": "Hi."}}]}], request=request
    ):
        pass
    return [
        json.loads(line) for line in session._state.ledger.transfer.export_lines(session._row.key)
    ]


DRAFT = {"type": "draft", "branch": 1, "id": "d", "createdAt": 5}


UNUSABLE: dict[str, tuple[int, dict[str, Any]]] = {
    "settings: ": (2, {"settings": {"reasoning.effort": "bogus"}}),
    "settings: unknown setting": (2, {"settings": {"bogus": 1}}),
    "encoding: must be one of": (2, {"encoding": "klingon"}),
    "currentBranch: has no line": (2, {"currentBranch": 9}),
    "batch: covers messages that did not come": (4, {"batch": 3}),
    "sent: model: a string": (5, {"sent": {"model": 5}}),
    "sent: unknown api": (5, {"sent": {"api": "telegraph"}}),
    "sent.settings: is not an object": (5, {"sent": {"digest": "x", "settings": "y"}}),
    "sent.settings: ": (5, {"sent": {"digest": "x", "settings": {"bogus": 1}}}),
    "sent.chosen: is not a list": (5, {"sent": {"digest": "x", "settings": {}, "chosen": ["y"]}}),
    "parts: are not": (6, {**DRAFT, "parts": ["not json"]}),
    "parts: are not parts of a": (6, {**DRAFT, "parts": ['[{"type":"text","text":5}]']}),
    "parts: are not parts of a draft": (6, {**DRAFT, "parts": ['[{"type":"finish","reason":5}]']}),
}


@pytest.mark.parametrize("says", UNUSABLE)
def test_an_invalid_line_is_refused_by_its_number(store: rs.Store, says: str) -> None:
    """It is not its session's next reader who finds it; mended, the same import goes on."""
    whole = lines_of(store.session("chat", create=True))
    number, change = UNUSABLE[says]
    broken = [dict(line) for line in whole]
    if change.get("type") == "draft":
        broken.insert(number - 1, change)
    else:
        broken[number - 1] |= change
    with rs.Store("sqlite://") as other:
        with pytest.raises(rs.InvalidCall, match=f"line {number}: {says}") as caught:
            other.import_lines(json.dumps(line) for line in broken)
        assert "bogus" not in f"{caught.value} {caught.value.hint}"
        assert other.sessions().items == []
        other.import_lines(json.dumps(line) for line in whole)
        assert other.verify().ok
        assert [json.loads(line) for line in other.export_lines()] == whole


def test_an_invalid_profile_is_refused_by_its_number(store: rs.Store) -> None:
    """What it sets is looked at as it is when it is set (ERR-001)."""
    store.settings.profiles.set("p", {"reasoning.effort": "high"})
    lines = [line.replace("high", "bogus") for line in store.export_lines()]
    with rs.Store("sqlite://") as other:
        with pytest.raises(rs.InvalidCall, match=r"line 2: settings: reasoning\.effort cannot be"):
            other.import_lines(lines)
        assert other.settings.profiles.all() == []


def test_what_is_imported_is_masked_first(tmp_path: Path, store: rs.Store) -> None:
    """Masking stands before every write, those of an import and of a draft too."""
    session = store.session("chat", create=True)
    session.append(rs.user("my key is hunter-2-hunter"))
    recording = session.record(
        iter([{"choices": [{"index": 0, "delta": {"content": "it was hunter-2-hunter, I think"}}]}])
    )
    recording.__enter__()
    chunks = iter(recording)
    next(chunks)
    store._state.draft_writer.write_branch(session._row.key, 1)
    lines = list(store.export_lines())
    masker = rs.SecretMasker(["hunter-2-hunter"])
    assert sum("hunter-2-hunter" in line for line in lines) == 2

    path = tmp_path / "masked.db"
    with rs.Store(f"sqlite:///{path}", masker=masker) as other:
        other.import_lines(lines)
        texts = [item.message.text for item in other.session("chat").history()]

    assert not any("hunter-2" in text for text in texts)
    assert len(texts) == 2
    assert b"hunter-2-hunter" not in path.read_bytes()
    recording.__exit__(None, None, None)
