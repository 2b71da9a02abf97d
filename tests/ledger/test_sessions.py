"""Sessions: found by their owner only, listed latest first, page by page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from reasoning_store.conversation.errors import (
    Conflict,
    InvalidCall,
    NotFound,
)
from reasoning_store.ledger.ledger import Ledger
from tests.properties import each, examples

from .histories import any_name, new_session, said


def test_another_owners_session_is_as_absent_as_none(ledger: Ledger) -> None:
    """The same error, word for word."""
    ledger.sessions.create("a", "chat", encoding="o200k_base")

    with pytest.raises(NotFound) as theirs:
        ledger.sessions.get("b", "chat")
    with pytest.raises(NotFound) as none:
        ledger.sessions.get("c", "chat")

    assert str(theirs.value) == str(none.value)
    assert ledger.sessions.get("a", "chat").id == "chat"


def test_two_names_with_one_key_are_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collision never opens another's session."""
    from reasoning_store.ledger import sessions

    monkeypatch.setattr(sessions, "session_key", lambda owner, session_id: 42)
    ledger.sessions.create("a", "chat", encoding="o200k_base")

    with pytest.raises(NotFound):
        ledger.sessions.get("b", "chat")
    with pytest.raises(Conflict):
        ledger.sessions.create("b", "chat", encoding="o200k_base")


def test_an_id_can_be_used_once(ledger: Ledger) -> None:
    """By each owner; without one we make one."""
    ledger.sessions.create("a", "chat", encoding="o200k_base")
    ledger.sessions.create("b", "chat", encoding="o200k_base")

    with pytest.raises(Conflict):
        ledger.sessions.create("a", "chat", encoding="o200k_base")
    made = ledger.sessions.create("a", encoding="o200k_base")
    assert made == ledger.sessions.get("a", made.id)


@examples(40)
@given(owner=any_name, id=any_name, title=any_name)
def test_any_names_come_back_exactly(ledger: Ledger, owner: str, id: str, title: str) -> None:
    """Owner, id, title, metadata and settings."""
    fresh = new_session(ledger).id + id
    made = ledger.sessions.create(
        owner,
        fresh,
        encoding="o200k_base",
        title=title,
        metadata={title: [id]},
    )
    made = ledger.sessions.change_settings(made.key, {"reasoning.effort": owner})

    found = ledger.sessions.get(owner, fresh)

    assert made == found
    assert (owner, fresh, title) == (found.owner, found.id, found.title)
    assert ({title: [id]}, {"reasoning.effort": owner}) == (found.metadata, found.settings)
    assert fresh in [row.id for row in ledger.sessions.page(owner, limit=1000).items]


def test_a_name_with_nul_is_refused(ledger: Ledger) -> None:
    """By its place; a text column of PostgreSQL cannot hold it. Nothing is changed."""
    found = new_session(ledger)

    calls: dict[str, Callable[[], object]] = {
        "a session id": lambda: ledger.sessions.create("a", "x\0", encoding="e"),
        "an owner": lambda: ledger.sessions.create("a\0", "x", encoding="e"),
        "a title": lambda: ledger.sessions.rename(found.key, "x\0"),
        "the name of a settings profile": lambda: ledger.profiles.set("a", "x\0", {}),
    }
    for what, call in calls.items():
        with pytest.raises(InvalidCall, match=f"^{what}: a string without NUL") as caught:
            call()
        assert caught.value.hint
    assert ledger.sessions.get(found.owner, found.id) == found


def test_an_id_that_no_index_holds_is_refused(ledger: Ledger) -> None:
    """Names have a limit; titles and owners have none."""
    with pytest.raises(InvalidCall):
        ledger.sessions.create("a", "x" * 1001, encoding="o200k_base")
    ledger.sessions.create("a" * 100_000, "x", encoding="o200k_base", title="t" * 100_000)
    assert len(ledger.sessions.page("a" * 100_000).items) == 1


def test_what_is_changed_is_returned_and_kept(ledger: Ledger) -> None:
    """Renaming and the like do not make a session the latest."""
    session = new_session(ledger)

    assert ledger.sessions.rename(session.key, "new").title == "new"
    assert ledger.sessions.set_metadata(session.key, {"x": 1}).metadata == {"x": 1}
    assert ledger.sessions.change_settings(session.key, {"reasoning.effort": "low"}).settings == {
        "reasoning.effort": "low"
    }
    assert ledger.sessions.archive(session.key).archived
    assert not ledger.sessions.archive(session.key, archived=False).archived
    assert ledger.sessions.rename(session.key, None).title is None
    assert session.updated_at == ledger.sessions.get("u", session.id).updated_at
    absent = session.key + 1
    changes: list[Callable[[], object]] = [
        lambda: ledger.sessions.rename(absent, "x"),
        lambda: ledger.sessions.set_metadata(absent, {}),
        lambda: ledger.sessions.change_settings(absent, {}),
        lambda: ledger.sessions.archive(absent),
    ]
    for change in changes:
        with pytest.raises(NotFound):
            change()


def test_pages_are_latest_first_and_complete(ledger: Ledger) -> None:
    """Each session once, whatever the size of a page, archived ones apart, of any year."""
    times = iter([n // 2 - 3 for n in range(11)])
    ledger.clock.now = lambda: next(times, 0)
    made = [ledger.sessions.create("p", f"s{n}", encoding="o200k_base") for n in range(11)]
    ledger.sessions.create("other", "s0", encoding="o200k_base")
    ledger.sessions.archive(made[3].key)
    ledger.messages.append(made[0].key, 1, [said()], created_at=100)
    every = sorted(
        (ledger.sessions.get("p", row.id) for row in made),
        key=lambda row: (row.updated_at, row.key),
        reverse=True,
    )

    for archived, expected in (
        (None, every),
        (False, [row for row in every if not row.archived]),
        (True, [row for row in every if row.archived]),
    ):
        for limit in (1, 3, 50):
            found, after = [], None
            while True:
                page = ledger.sessions.page("p", limit=limit, after=after, archived=archived)
                found += page.items
                after = page.next
                if after is None:
                    break
            assert expected == found

    assert every[0].id == "s0"
    assert ledger.sessions.page("nobody").items == []


@each(
    "after", ["", "1", "a.b", "1.", ".1", "-.1", "--1.1", "1.-1", "1.2.3", "9" * 60, f"{2**63}.1"]
)
def test_a_cursor_that_we_did_not_make_is_refused(ledger: Ledger, after: str) -> None:
    """And so is an empty page."""
    with pytest.raises(InvalidCall):
        ledger.sessions.page("u", after=after)
    with pytest.raises(InvalidCall):
        ledger.sessions.page("u", limit=0)
