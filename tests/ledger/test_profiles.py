"""Settings profiles and the owner's default: read with each request."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from sqlalchemy import Connection

from reasoning_store.conversation.errors import Conflict, CorruptRow, InvalidCall, NotFound
from reasoning_store.ledger import keys, profiles, sessions
from reasoning_store.ledger.database.statement import Params, Statement, driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import KeptSettings, SessionRow
from reasoning_store.tokens import ENCODINGS
from tests.properties import examples

from .histories import any_name, any_text, new_session, said

HIGH = {"reasoning.effort": "high"}
LOW = {"reasoning.effort": "low"}


def test_a_session_reads_the_profile_that_it_uses(ledger: Ledger) -> None:
    """As it is now, and its own settings stay with it."""
    session = new_session(ledger)
    ledger.sessions.change_settings(session.key, {"reasoning.enabled": False})
    ledger.profiles.set("u", "deep", HIGH)
    assert (session.profile, of_profile(ledger, session)) == (None, None)

    used = ledger.sessions.use_profile(session.key, "deep")
    assert (used.profile, of_profile(ledger, session)) == ("deep", HIGH)
    ledger.profiles.set("u", "deep", LOW)
    kept = ledger.sessions.kept_settings("u", session.id)

    assert kept == KeptSettings({"reasoning.enabled": False}, LOW, {})
    assert ledger.sessions.page("u").items == [ledger.sessions.get("u", session.id)]
    ledger.sessions.use_profile(session.key, None)
    assert ledger.sessions.kept_settings("u", session.id).profile is None
    assert ledger.sessions.get("u", session.id).profile is None


def of_profile(ledger: Ledger, session: SessionRow) -> dict[str, Any] | None:
    """Return what the profile that a session uses sets."""
    return ledger.sessions.kept_settings(session.owner, session.id).profile


def test_a_session_takes_one_read_and_its_settings_one_more(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile and the owner's default are read by the owner's key, where they are asked for."""
    for name in ("a", "b"):
        session = ledger.sessions.create("u", name, encoding="x")
    ledger.profiles.set("u", "deep", HIGH)
    run: list[Statement] = []
    plain = Statement._bound

    def counting(self: Statement, connection: Connection, params: Params) -> Any:
        run.append(self)
        return plain(self, connection, params)

    def reads(read: Callable[[], object]) -> int:
        run.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Statement, "_bound", counting)
            read()
        return len(run)

    for name in ("a", "b"):
        ledger.sessions.use_profile(ledger.sessions.get("u", name).key, "deep")
    assert reads(lambda: ledger.sessions.get("u", session.id)) == 1
    assert reads(lambda: ledger.sessions.kept_settings("u", session.id)) == 2


def test_a_default_is_its_owners_own_and_no_profile(ledger: Ledger) -> None:
    """Set key by key; not listed, not shared, and no name can reach it."""
    session = new_session(ledger)
    for change in ({"reasoning.floor": "off"}, HIGH):
        ledger.profiles.change("u", profiles.DEFAULT, change)
    with pytest.raises(InvalidCall):
        ledger.profiles.set("u", profiles.DEFAULT, LOW)
    with pytest.raises(InvalidCall):
        ledger.profiles.drop("u", profiles.DEFAULT)
    ledger.profiles.change("u", profiles.DEFAULT, {}, unset={"reasoning.floor"})

    assert ledger.sessions.kept_settings("u", session.id) == KeptSettings({}, None, HIGH)
    assert (ledger.profiles.default_of("u"), ledger.profiles.default_of("other")) == (HIGH, {})
    assert ledger.profiles.all_of("u") == []
    assert ledger.audit.verify(encodings=ENCODINGS).problems == ()


def test_a_default_goes_out_with_its_owner_and_comes_back(ledger: Ledger) -> None:
    """In an export, and with an erasure of its owner."""
    ledger.profiles.change("u", profiles.DEFAULT, HIGH)
    exported = list(ledger.transfer.export_lines(owner="u"))
    gone = ledger.erasure.erase_owner("u")
    between = ledger.profiles.default_of("u")
    ledger.transfer.import_lines(exported)

    assert (gone.profiles, between) == (1, {})
    assert ledger.profiles.default_of("u") == HIGH


def test_profiles_are_their_owners_own(ledger: Ledger) -> None:
    """Listed by name; another's of the same name is another."""
    for name in ("z", "a", "m"):
        ledger.profiles.set("u", name, HIGH)
    ledger.profiles.set("other", "a", LOW)
    session = new_session(ledger)

    assert [row.name for row in ledger.profiles.all_of("u")] == ["a", "m", "z"]
    assert [row.settings for row in ledger.profiles.all_of("other")] == [LOW]
    assert ledger.profiles.all_of("nobody") == []
    ledger.sessions.use_profile(session.key, "a")
    ledger.profiles.drop("other", "a")
    assert of_profile(ledger, session) == HIGH


def test_a_profile_that_is_not_there_cannot_be_used_or_dropped(ledger: Ledger) -> None:
    """And what the session used before stays."""
    session = new_session(ledger)
    ledger.profiles.set("u", "deep", HIGH)
    ledger.profiles.set("other", "theirs", LOW)
    ledger.sessions.use_profile(session.key, "deep")

    for name in ("none", "theirs"):
        with pytest.raises(NotFound):
            ledger.sessions.use_profile(session.key, name)
        with pytest.raises(NotFound):
            ledger.profiles.drop("u", name)
    with pytest.raises(NotFound):
        ledger.sessions.use_profile(session.key + 1, "deep")
    with pytest.raises(InvalidCall):
        ledger.profiles.set("u", "n" * 2000, HIGH)

    assert ledger.sessions.get("u", session.id).profile == "deep"


def test_a_change_of_nothing_makes_sure_that_a_profile_exists(ledger: Ledger) -> None:
    """Many at once: one profile, and what it says already stays."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ledger.profiles.change("u", "deep", {}), range(8)))
    made = [row.settings for row in ledger.profiles.all_of("u")]
    ledger.profiles.change("u", "deep", HIGH)
    ledger.profiles.change("u", "deep", {})

    assert made == [{}]
    assert [row.settings for row in ledger.profiles.all_of("u")] == [HIGH]
    assert ledger.sessions.use_profile(new_session(ledger).key, "deep").profile == "deep"


def test_a_profile_that_is_not_there_is_named_with_what_makes_it(ledger: Ledger) -> None:
    """By ``use``, too."""
    with pytest.raises(NotFound, match="no settings profile 'deep'") as caught:
        ledger.sessions.use_profile(new_session(ledger).key, "deep")

    assert "profiles.change('deep', {})" in str(caught.value.hint)


def test_a_dropped_profile_gives_nothing_until_there_is_one_again(ledger: Ledger) -> None:
    """Sessions go on naming it."""
    session = new_session(ledger)
    ledger.profiles.set("u", "deep", HIGH)
    ledger.sessions.use_profile(session.key, "deep")

    ledger.profiles.drop("u", "deep")
    dropped = of_profile(ledger, session)
    ledger.profiles.set("u", "deep", LOW)

    assert (dropped, of_profile(ledger, session)) == (None, LOW)
    assert ledger.sessions.get("u", session.id).profile == "deep"


def test_two_owners_with_one_key_are_kept_apart(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collision neither shows nor changes what is another's."""
    monkeypatch.setattr(profiles, "owner_key", lambda owner: 42)
    monkeypatch.setattr(sessions, "owner_key", lambda owner: 42)
    ledger.profiles.set("a", "deep", HIGH)
    session = ledger.sessions.create("b", "s", encoding="o200k_base")

    with pytest.raises(Conflict):
        ledger.profiles.set("b", "deep", LOW)
    with pytest.raises(Conflict):
        ledger.profiles.change("b", "deep", LOW)
    with pytest.raises(NotFound):
        ledger.profiles.change("b", "deep", {}, unset={"reasoning.effort"})
    with pytest.raises(NotFound):
        ledger.sessions.use_profile(session.key, "deep")
    with pytest.raises(NotFound):
        ledger.profiles.drop("b", "deep")

    assert ledger.profiles.all_of("b") == []
    assert [row.settings for row in ledger.profiles.all_of("a")] == [HIGH]


def test_nothing_is_taken_out_of_a_profile_that_is_not_there(ledger: Ledger) -> None:
    """And none is made for it."""
    with pytest.raises(NotFound):
        ledger.profiles.change("u", "deep", {}, unset={"reasoning.effort"})

    assert ledger.profiles.all_of("u") == []


def test_a_key_that_is_not_there_may_be_taken_out(ledger: Ledger) -> None:
    """Of a profile that is there; twice is the same as once."""
    ledger.profiles.set("u", "deep", HIGH)

    for _ in range(2):
        ledger.profiles.change("u", "deep", {}, unset={"reasoning.effort"})

    assert [row.settings for row in ledger.profiles.all_of("u")] == [{}]


def test_changes_at_once_all_hold(ledger: Ledger) -> None:
    """No one's key is lost to another's, a new profile's neither."""
    names = [f"key {number}" for number in range(12)]

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda name: ledger.profiles.change("u", "deep", {name: name}), names))

    (found,) = ledger.profiles.all_of("u")
    assert found.settings == {name: name for name in names}


@examples(30)
@given(owner=any_name, name=any_name.filter(bool), value=any_text)
def test_any_names_and_values_come_back_exactly(
    ledger: Ledger, owner: str, name: str, value: str
) -> None:
    """In a value NUL too."""
    kept = ledger.profiles.set(owner, name, {name: value})

    assert kept in ledger.profiles.all_of(owner)
    assert (kept.name, kept.settings) == (name, {name: value})
    ledger.profiles.drop(owner, name)
    assert kept not in ledger.profiles.all_of(owner)


def test_no_session_has_the_key_of_an_owner() -> None:
    """So that no profile lies among a session's rows."""
    assert keys.owner_key("u") not in {keys.session_key("u", id) for id in ("", "u", "s")}


def test_a_profile_that_cannot_be_read_is_raised(ledger: Ledger) -> None:
    """By the list and by the session."""
    session = new_session(ledger)
    ledger.profiles.set("u", "deep", HIGH)
    ledger.sessions.use_profile(session.key, "deep")
    ledger.messages.append(session.key, 1, [said()])
    ledger.database.write(
        lambda connection: driver(connection).execute("UPDATE settings_profiles SET settings = '{'")
    )

    with pytest.raises(CorruptRow):
        ledger.profiles.all_of("u")
    with pytest.raises(CorruptRow):
        ledger.profiles.change("u", "deep", LOW)
    with pytest.raises(CorruptRow):
        ledger.sessions.kept_settings("u", session.id)
