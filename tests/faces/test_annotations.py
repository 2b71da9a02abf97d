"""Facts that an application keeps with a message: merged, exported, erased, and sent to no one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.ledger.histories import any_text, json_values
from tests.properties import each, examples

FACTS = {"rating": 1, "secondsThought": 2.5, "why": ["kind", {"\u00e9": None}], "a\0b": "\0"}


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    made = store.session("s", create=True)
    made.append([rs.user("one"), rs.assistant(rs.ThinkingBlock(thought="hm"), "two")])
    return made


def test_facts_are_kept_with_a_message(store: rs.Store, session: rs.Session) -> None:
    """In get, in a history, and on each branch that shares the message."""
    id = session.get(2).id
    assert session.get(2).annotations == {}

    assert session.annotate(id, FACTS) == FACTS

    assert store.session("s").get(id).annotations == FACTS
    assert [item.annotations for item in session.history()] == [{}, FACTS]
    assert session.fork(at=3).get(2).annotations == FACTS


def test_keys_are_merged_and_none_removes_one(session: rs.Session) -> None:
    """The last value of a key holds; nothing left is nothing."""
    session.annotate(2, {"rating": 1, "by": "u7"})

    assert session.annotate(2, {"rating": -1, "why": "slow"}) == {
        "rating": -1,
        "by": "u7",
        "why": "slow",
    }
    assert session.annotate(2, {"by": None, "absent": None}) == {"rating": -1, "why": "slow"}
    assert session.annotate(2, {"rating": None, "why": None}) == {}
    assert session.get(2).annotations == {}


@examples(50)
@given(changes=st.lists(st.dictionaries(any_text, json_values, max_size=3), max_size=4))
def test_any_facts_come_back_as_a_dict_that_was_updated(changes: list[dict[str, Any]]) -> None:
    """Whatever JSON holds."""
    wanted: dict[str, Any] = {}
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(rs.user("one"))
        for change in changes:
            wanted |= change
            wanted = {key: value for key, value in wanted.items() if value is not None}
            assert session.annotate(1, change) == wanted
        assert session.get(1).annotations == wanted
        assert store.verify().ok


def test_they_change_neither_message_nor_count_nor_request(session: rs.Session) -> None:
    """No model gets to see them."""
    before = session.history(), session.usage(), session.build_request(model="m").body

    session.annotate(2, {"secret": "sauce"})

    after = session.history(), session.usage(), session.build_request(model="m").body
    assert [item.message for item in after[0]] == [item.message for item in before[0]]
    assert after[1:] == before[1:]
    assert session._state.ledger.audit.verify().ok


REFUSED: dict[str, Any] = {
    "no mapping": [("a", 1)],
    "a key": {1: 2},
    "a value": {"at": object()},
    "a number": {"n": float("nan")},
    "too large": {"text": "x" * (16 * 1024)},
}


@each("what", REFUSED)
def test_what_is_refused_changes_nothing(session: rs.Session, what: str) -> None:
    """JSON values only, and few of them."""
    session.annotate(2, {"rating": 1})

    with pytest.raises(rs.InvalidCall, match=r"^annotations: "):
        session.annotate(2, REFUSED[what])

    assert session.get(2).annotations == {"rating": 1}


def test_small_facts_that_become_too_large_together_are_refused(session: rs.Session) -> None:
    """The limit is on all that a message has, in bytes."""
    session.annotate(2, {"a": "\u00e9" * 8_000})

    with pytest.raises(rs.InvalidCall, match="bytes of JSON, and a message has at most 16384"):
        session.annotate(2, {"b": "x" * 500})

    assert [*session.get(2).annotations] == ["a"]
    assert [*session.annotate(2, {"a": None, "b": "x" * 500})] == ["b"]


def test_they_go_with_the_message(session: rs.Session) -> None:
    """Its reasoning alone goes without them; an erased message keeps no more."""
    session.annotate(2, {"rating": 1})

    session.erase(2, only="reasoning")
    assert session.get(2).annotations == {"rating": 1}
    session.erase(2)
    assert session.get(2).annotations == {}
    with pytest.raises(rs.Conflict, match="was erased"):
        session.annotate(2, {"rating": 1})


def test_no_byte_of_an_erased_message_is_left(sqlite_path: Any) -> None:
    """As of the message itself."""
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("s", create=True)
        session.append(rs.user("one"))
        session.annotate(1, {"comment": "findthisfact"})
        session.annotate(1, {"comment": "findthistoo"})
        session.erase(1)

    left = b"".join(path.read_bytes() for path in sqlite_path.parent.glob("chat.db*"))
    assert b"findthis" not in left


def test_they_are_exported_and_imported(store: rs.Store, session: rs.Session) -> None:
    """A message that is there keeps its own: the same lines again are nothing."""
    session.annotate(2, FACTS)
    lines = list(store.export_lines())
    with rs.Store("sqlite://") as other:
        other.import_lines(lines)
        there = other.session("s")
        assert there.get(2).annotations == FACTS

        there.annotate(2, {"rating": 5})
        assert other.import_lines(lines).already == 2
        assert there.get(2).annotations == {**FACTS, "rating": 5}


def test_an_import_refuses_facts_that_are_too_large(store: rs.Store, session: rs.Session) -> None:
    """Its line is named, and nothing of the session is written."""
    session.annotate(1, {"rating": 1})
    lines = [
        line.replace('{"rating":1}', '{"t":"%s"}' % ("x" * 20_000)) for line in store.export_lines()
    ]

    with rs.Store("sqlite://") as other:
        with pytest.raises(rs.InvalidCall, match="annotations"):
            other.import_lines(lines)
        assert not other.sessions().items


def test_secrets_are_masked_in_them(url: str) -> None:
    """In values and keys, as they are written and as they are imported."""
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        session.append(rs.user("one"))
        session.annotate(1, {"note": "key hunter2!", "hunter2!": 1})
        lines = list(store.export_lines())
    masker = rs.SecretMasker(values=["hunter2!"])
    with rs.Store("sqlite://", masker=masker) as store:
        store.import_lines(lines)
        imported = store.session("s").get(1).annotations
        written = store.session("s").annotate(1, {"again": "hunter2!"})
    assert "hunter2!" not in str(imported)
    assert "hunter2!" not in str(written)
    assert len(written) == 3


def test_facts_that_cannot_be_read_back_are_found(store: rs.Store, session: rs.Session) -> None:
    """They are raised, and verify names the message."""
    session.annotate(2, {"rating": 1})
    session._state.ledger.database.write(
        lambda connection: connection.exec_driver_sql(
            "UPDATE messages SET annotations = '[]' WHERE annotations IS NOT NULL"
        )
    )

    with pytest.raises(rs.CorruptRow):
        session.history()
    assert [(one.code, one.position) for one in store.verify().problems] == [("unreadable", 2)]
