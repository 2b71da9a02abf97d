"""Settings profiles: an owner's own, read with each session that uses one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings

from reasoning_store.errors import Conflict, CorruptRow, NotFound, UsageError
from reasoning_store.ledger import keys, profiles, sessions
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.sql import Sql, driver

from .histories import any_text, new_session, said

HIGH = {"reasoning.effort": "high"}
LOW = {"reasoning.effort": "low"}


def test_a_session_reads_the_profile_that_it_uses(ledger: Ledger) -> None:
    """As it is now, with the session; its own settings stay beside it."""
    session = new_session(ledger)
    ledger.change_settings(session.key, {"reasoning.enabled": False})
    ledger.set_profile("u", "deep", HIGH)
    assert (session.profile, session.profile_settings) == (None, None)

    used = ledger.use_profile(session.key, "deep")
    ledger.set_profile("u", "deep", LOW)
    found = ledger.get_session("u", session.id)

    assert (used.profile, used.profile_settings) == ("deep", HIGH)
    assert (found.profile, found.profile_settings) == ("deep", LOW)
    assert found.settings == {"reasoning.enabled": False}
    assert ledger.sessions("u").items == [found]
    assert ledger.rename(session.key, "t").profile_settings == LOW
    assert ledger.use_profile(session.key, None).profile_settings is None
    assert ledger.get_session("u", session.id).profile is None


def test_it_takes_no_second_read(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement gives the session and its profile."""
    session = new_session(ledger)
    ledger.set_profile("u", "deep", HIGH)
    ledger.use_profile(session.key, "deep")
    run: list[Sql] = []
    plain = Sql.rows

    def counting(self: Sql, connection: object, params: object) -> list[tuple[object, ...]]:
        run.append(self)
        return plain(self, connection, params)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Sql, "rows", counting)
        assert ledger.get_session("u", session.id).profile_settings == HIGH

    assert len(run) == 1


def test_profiles_are_their_owners_own(ledger: Ledger) -> None:
    """Listed by name; another's of the same name is another."""
    for name in ("z", "a", "m"):
        ledger.set_profile("u", name, HIGH)
    ledger.set_profile("other", "a", LOW)
    session = new_session(ledger)

    assert [row.name for row in ledger.profiles("u")] == ["a", "m", "z"]
    assert [row.settings for row in ledger.profiles("other")] == [LOW]
    assert ledger.profiles("nobody") == []
    assert ledger.use_profile(session.key, "a").profile_settings == HIGH
    ledger.drop_profile("other", "a")
    assert ledger.use_profile(session.key, "a").profile_settings == HIGH


def test_a_profile_that_is_not_there_cannot_be_used_or_dropped(ledger: Ledger) -> None:
    """And what the session used before stays."""
    session = new_session(ledger)
    ledger.set_profile("u", "deep", HIGH)
    ledger.set_profile("other", "theirs", LOW)
    ledger.use_profile(session.key, "deep")

    for name in ("none", "theirs"):
        with pytest.raises(NotFound):
            ledger.use_profile(session.key, name)
        with pytest.raises(NotFound):
            ledger.drop_profile("u", name)
    with pytest.raises(NotFound):
        ledger.use_profile(session.key + 1, "deep")
    with pytest.raises(UsageError):
        ledger.set_profile("u", "n" * 2000, HIGH)

    assert ledger.get_session("u", session.id).profile == "deep"


def test_a_dropped_profile_gives_nothing_until_there_is_one_again(ledger: Ledger) -> None:
    """Sessions go on naming it."""
    session = new_session(ledger)
    ledger.set_profile("u", "deep", HIGH)
    ledger.use_profile(session.key, "deep")

    ledger.drop_profile("u", "deep")
    found = ledger.get_session("u", session.id)
    ledger.set_profile("u", "deep", LOW)

    assert (found.profile, found.profile_settings) == ("deep", None)
    assert ledger.get_session("u", session.id).profile_settings == LOW


def test_two_owners_with_one_key_are_kept_apart(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collision neither shows nor changes what is somebody else's."""
    monkeypatch.setattr(profiles, "owner_key", lambda owner: 42)
    monkeypatch.setattr(sessions, "owner_key", lambda owner: 42)
    ledger.set_profile("a", "deep", HIGH)
    session = ledger.create_session("b", "s", encoding="o200k_base")

    with pytest.raises(Conflict):
        ledger.set_profile("b", "deep", LOW)
    with pytest.raises(Conflict):
        ledger.change_profile("b", "deep", LOW)
    with pytest.raises(NotFound):
        ledger.change_profile("b", "deep", {}, unset={"reasoning.effort"})
    with pytest.raises(NotFound):
        ledger.use_profile(session.key, "deep")
    with pytest.raises(NotFound):
        ledger.drop_profile("b", "deep")

    assert ledger.profiles("b") == []
    assert [row.settings for row in ledger.profiles("a")] == [HIGH]


def test_a_change_leaves_the_other_keys(ledger: Ledger) -> None:
    """What is changed is changed, what is unset is gone, and the rest stays."""
    ledger.set_profile("u", "deep", {**HIGH, "reasoning.enabled": True})

    ledger.change_profile("u", "deep", {"reasoning.floor": "off"}, unset={"reasoning.enabled"})

    (found,) = ledger.profiles("u")
    assert found.settings == {**HIGH, "reasoning.floor": "off"}


def test_a_change_makes_the_profile(ledger: Ledger) -> None:
    """As setting a whole one does."""
    made = ledger.change_profile("u", "deep", HIGH)

    assert ledger.profiles("u") == [made]
    assert made.settings == HIGH


def test_nothing_is_taken_out_of_a_profile_that_is_not_there(ledger: Ledger) -> None:
    """And none is made for it."""
    with pytest.raises(NotFound):
        ledger.change_profile("u", "deep", {}, unset={"reasoning.effort"})

    assert ledger.profiles("u") == []


def test_a_key_that_is_not_there_may_be_taken_out(ledger: Ledger) -> None:
    """Of a profile that is there; twice is the same as once."""
    ledger.set_profile("u", "deep", HIGH)

    for _ in range(2):
        ledger.change_profile("u", "deep", {}, unset={"reasoning.effort"})

    assert [row.settings for row in ledger.profiles("u")] == [{}]


def test_changes_at_once_all_hold(ledger: Ledger) -> None:
    """Nobody's key is lost to another's, a new profile's neither."""
    names = [f"key {number}" for number in range(12)]

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda name: ledger.change_profile("u", "deep", {name: name}), names))

    (found,) = ledger.profiles("u")
    assert found.settings == {name: name for name in names}


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(owner=any_text, name=any_text, value=any_text)
def test_any_names_and_values_come_back_exactly(
    ledger: Ledger, owner: str, name: str, value: str
) -> None:
    """NUL and lone surrogates too."""
    kept = ledger.set_profile(owner, name, {name: value})

    assert kept in ledger.profiles(owner)
    assert (kept.name, kept.settings) == (name, {name: value})
    ledger.drop_profile(owner, name)
    assert kept not in ledger.profiles(owner)


def test_no_session_has_the_key_of_an_owner() -> None:
    """So that no profile lies among a session's rows."""
    assert keys.owner_key("u") not in {keys.session_key("u", id) for id in ("", "u", "s")}


def test_a_profile_that_cannot_be_read_is_raised(ledger: Ledger) -> None:
    """By the list and by the session."""
    session = new_session(ledger)
    ledger.set_profile("u", "deep", HIGH)
    ledger.use_profile(session.key, "deep")
    ledger.append(session.key, 1, [said()])
    ledger._write(
        lambda connection: driver(connection).execute("UPDATE settings_profiles SET settings = '{'")
    )

    with pytest.raises(CorruptRow):
        ledger.profiles("u")
    with pytest.raises(CorruptRow):
        ledger.change_profile("u", "deep", LOW)
    with pytest.raises(CorruptRow):
        ledger.get_session("u", session.id)
