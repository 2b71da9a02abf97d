"""Settings that are stored: profiles, defaults of owners, and the order of the layers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

import reasoning_store as rs

from .answering import thinking

# Profiles


def test_a_session_uses_a_profile_by_name(store: rs.Store) -> None:
    """What the profile says later holds too; the session's own setting is stronger."""
    session = store.session("chat", create=True)
    store.settings.profiles.set("deep", {"reasoning.effort": "high"})
    session.settings.use("deep")
    first = session.settings.resolved()["reasoning.effort"]
    store.settings.profiles.set("deep", {"reasoning.effort": "low"})
    second = session.settings.resolved()["reasoning.effort"]
    session.settings.set("reasoning.effort", "max")
    third = session.settings.resolved()["reasoning.effort"]

    assert [(one.value, one.layer) for one in (first, second, third)] == [
        ("high", "profile"),
        ("low", "profile"),
        ("max", "session"),
    ]


def test_a_session_can_stop_using_a_profile(store: rs.Store) -> None:
    """Then the weaker layers decide."""
    session = store.session("chat", create=True)
    store.settings.profiles.set("deep", {"reasoning.effort": "high"})
    session.settings.use("deep")
    session.settings.use(None)

    assert session.settings.profile() is None
    assert session.settings.resolved()["reasoning.effort"].layer == "default"


def test_a_profile_with_a_bad_value_is_not_kept(store: rs.Store) -> None:
    """ERR-001: refused whole."""
    with pytest.raises(rs.SettingError):
        store.settings.profiles.set("deep", {"reasoning.effort": "high", "reasoning.floor": "x"})

    assert store.settings.profiles.all() == []


def test_a_change_of_a_profile_leaves_its_other_keys(store: rs.Store) -> None:
    """One key is changed, another goes, the rest stays."""
    profiles = store.settings.profiles
    profiles.set("deep", {"reasoning.effort": "high", "reasoning.enabled": True})

    made = profiles.change("deep", {"include_in_context": True}, unset=["enabled"])

    assert made.settings == {"reasoning.effort": "high", "reasoning.includeInContext": True}
    assert profiles.get("deep") == made


def test_a_bad_change_of_a_profile_changes_nothing(store: rs.Store) -> None:
    """ERR-001: neither a value that is not allowed nor a key that there is not."""
    kept = store.settings.profiles.set("deep", {"reasoning.effort": "high"})

    with pytest.raises(rs.SettingError):
        store.settings.profiles.change("deep", {"reasoning.effort": "low", "reasoning.floor": "x"})
    with pytest.raises(rs.SettingError):
        store.settings.profiles.change("deep", {}, unset=["reasoning.efort"])

    assert store.settings.profiles.all() == [kept]


def test_an_unknown_profile_names_the_nearest(store: rs.Store) -> None:
    """Nothing changes, and the hint helps."""
    store.settings.profiles.set("careful", {})
    with pytest.raises(rs.NotFound) as refused:
        store.settings.profiles.get("carful")

    assert refused.value.hint == "did you mean 'careful'?"
    with pytest.raises(rs.NotFound):
        store.session("chat", create=True).settings.use("carful")


def test_profiles_are_their_owners(store: rs.Store) -> None:
    """Another owner does not see them and cannot use them."""
    store.for_owner("ann").settings.profiles.set("deep", {"reasoning.effort": "high"})

    assert store.for_owner("bob").settings.profiles.all() == []
    with pytest.raises(rs.NotFound):
        store.for_owner("bob").session("chat", create=True).settings.use("deep")


def test_the_layers_stand_in_their_order(store: rs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call, session, profile, owner's default, environment, default: taken away one by one."""
    mine = store.for_owner("ann")
    mine.settings.profiles.set("deep", {"reasoning.effort": "high"})
    mine.settings.set("reasoning.effort", "medium")
    monkeypatch.setenv("REASONING_STORE_EFFORT", "low")
    session = mine.session("chat", create=True, profile="deep", settings={"effort": "xhigh"})

    def layer(**call: Any) -> tuple[Any, str]:
        found = session.build_request(settings=call).settings.resolved()["reasoning.effort"]
        return found.value, found.layer

    seen = [layer(effort="max"), layer()]
    session.settings.unset("reasoning.effort")
    seen += [layer()]
    session.settings.use(None)
    seen += [layer()]
    mine.settings.unset("reasoning.effort")
    seen += [layer()]
    monkeypatch.delenv("REASONING_STORE_EFFORT")

    assert [*seen, layer()] == [
        ("max", "call"),
        ("xhigh", "session"),
        ("high", "profile"),
        ("medium", "owner"),
        ("low", "environment"),
        (None, "default"),
    ]


def test_an_owners_default_holds_for_its_sessions_alone(store: rs.Store) -> None:
    """For those made before it too; a bad value changes nothing (ERR-001)."""
    ann, bob = store.for_owner("ann"), store.for_owner("bob")
    before = ann.session("before", create=True)
    ann.settings.set("include_in_context", True)
    with pytest.raises(rs.SettingError):
        ann.settings.set("reasoning.effort", "loud")
    with pytest.raises(rs.SettingError):
        ann.settings.unset("reasoning.efort")

    def included(resolved: dict[str, rs.results.Resolved]) -> tuple[Any, str]:
        found = resolved["reasoning.includeInContext"]
        return found.value, found.layer

    assert included(ann.settings.resolved()) == (True, "owner")
    assert included(before.settings.resolved()) == (True, "owner")
    assert included(bob.settings.resolved()) == (False, "default")
    assert included(bob.session(create=True).settings.resolved()) == (False, "default")
    assert ann.settings.profiles.all() == []


def test_a_session_is_made_whole_or_not_at_all(store: rs.Store) -> None:
    """With its profile, settings, title and metadata; one that exists stays as it is."""
    profiles = store.settings.profiles
    profiles.change("deep", {})
    with pytest.raises(rs.NotFound):
        store.session("chat", create=True, profile="dep", settings={"reasoning.effort": "low"})
    with pytest.raises(rs.SettingError):
        store.session("chat", create=True, profile="deep", settings={"reasoning.effort": "loud"})
    assert store.sessions().items == []

    made = store.session(
        "chat",
        create=True,
        profile="deep",
        settings=rs.ReasoningSettings(effort="low"),
        title="Primes",
        metadata={"from": "web"},
    )
    again = store.session("chat", create=True, settings={"effort": "max"}, title="Another")

    assert (again.title, again.metadata) == ("Primes", {"from": "web"})
    assert (made.settings.profile(), again.settings.profile()) == ("deep", "deep")
    assert again.settings.resolved()["reasoning.effort"].value == "low"


def test_the_awaited_face_has_the_same_defaults(url: str) -> None:
    """And makes a session in the same one step."""

    async def keep() -> tuple[dict[str, rs.results.Resolved], dict[str, rs.results.Resolved]]:
        async with rs.AsyncStore(url) as store:
            await store.settings.set("reasoning.effort", "high")
            await store.settings.profiles.change("deep", {})
            session = await store.session(
                "chat", create=True, profile="deep", settings={"floor": "off"}
            )
            resolved = await session.settings.resolved()
            await store.settings.unset("reasoning.effort")
            return resolved, await store.settings.resolved()

    resolved, after = asyncio.run(keep())

    assert resolved["reasoning.effort"].layer == "owner"
    assert resolved["reasoning.floor"].layer == "session"
    assert after["reasoning.effort"].layer == "default"


def test_an_owners_budget_is_about_all_sessions_in_its_window(store: rs.Store) -> None:
    """With the numbers of the report; it remembers no marks, and another owner has its own."""
    mine, other = store.for_owner("ann"), store.for_owner("bob")
    for name, day in (("a", 1), ("b", 2), ("c", 3)):
        reply = rs.assistant("No.", usage=rs.Usage(output=40, reasoning=10))
        at = datetime(2026, 1, day, tzinfo=UTC)
        mine.session(name, create=True).append([rs.user("?"), reply], created_at=at)
    mine.session("d", create=True).append(rs.assistant(thinking("7 * 13"), "No."))
    (row,) = mine.report(by="owner")
    whole = mine.budget()
    since = [mine.budget(limit=30, since=datetime(2026, 1, 2, tzinfo=UTC)) for _ in range(2)]

    assert (whole.reasoning, whole.counted, whole.unreported) == (30, row.counted, 1)
    assert (whole.used, whole.state) == (30 + row.counted, "ok")
    assert [one.reasoning for one in since] == [20, 20]
    assert {(one.state, one.crossed) for one in since} == {("warning", ())}
    assert (other.budget(limit=1).used, store.budget(limit=1).used) == (0, 0)


def test_settings_that_are_set_at_once_are_all_kept(store: rs.Store) -> None:
    """Each key is a change of its own, not a copy of all the others."""
    one, other = store.session("chat", create=True), store.session("chat")
    one.settings.set("reasoning.effort", "high")
    other.settings.set("reasoning.includeInContext", True)
    one.settings.unset("reasoning.effort")

    resolved = one.settings.resolved()
    assert resolved["reasoning.includeInContext"].value is True
    assert resolved["reasoning.effort"].layer == "default"
