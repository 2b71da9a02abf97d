"""What is kept and how it leaves: names, profiles, lines, backups, reports, erasure, by owner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.recording import draft_writer


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        yield opened


@pytest.fixture
def embedded(sqlite_path: Path) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{sqlite_path}") as opened:
        yield opened


def thinking(text: str, **about: Any) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field="reasoning_content", **about)


def talk(session: rs.Session) -> None:
    origin = rs.Origin(provider="deepseek", api="openai.chat", model="deepseek-chat")
    session.append(
        [
            rs.user("Is 91 prime?"),
            rs.assistant(
                thinking("7 * 13", signature="c2ln"),
                rs.TextBlock(text="No."),
                origin=origin,
                usage=rs.Usage(input=10, output=20, reasoning=15),
            ),
        ]
    )


# The list of sessions


def test_a_session_is_listed_under_its_new_title(store: rs.Store) -> None:
    """The one who looks next sees it; without one it has none again."""
    session = store.session("s", create=True, title="A title")
    session.rename("Another")
    assert [item.title for item in store.sessions().items] == ["Another"]

    session.rename(None)
    assert [item.title for item in store.sessions().items] == [None]


def test_an_archived_session_is_listed_apart_until_it_is_put_back(store: rs.Store) -> None:
    """In the one list or in the other, never in both."""

    def listed(*, archived: bool) -> list[str]:
        return [item.id for item in store.sessions(archived=archived).items]

    session = store.session("s", create=True)
    store.session("other", create=True)
    session.archive()
    assert (listed(archived=False), listed(archived=True)) == (["other"], ["s"])

    session.archive(archived=False)
    assert ({*listed(archived=False)}, listed(archived=True)) == ({"s", "other"}, [])


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
    "sent.model: is not a string": (5, {"sent": {"model": 5}}),
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


# Whole stores


def test_a_backup_is_a_store(tmp_path: Path, embedded: rs.Store) -> None:
    """Made while the original is open; what is there already stays."""
    talk(embedded.session("chat", create=True))
    path = tmp_path / "copy.db"

    made = embedded.backup(path)

    assert (made.sessions, made.messages) == (1, 2)
    with rs.Store(f"sqlite:///{path}") as copy:
        assert copy.verify().ok
        assert list(copy.export_lines()) == list(embedded.export_lines())
    with pytest.raises(rs.ReasoningStoreError):
        embedded.backup(path)


def test_a_server_is_backed_up_by_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    """The error says so, and nothing is written."""
    with rs.Store(postgres_url) as store, pytest.raises(rs.InvalidCall) as refused:
        store.backup(tmp_path / "copy.db")

    assert "pg_dump" in f"{refused.value} {refused.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_a_report_sums_what_was_used(store: rs.Store) -> None:
    """By session, owner, model or day; an owner sees his own."""
    talk(store.for_owner("ann").session("chat", create=True))
    talk(store.for_owner("bob").session("chat", create=True))

    by_owner = {row.owner: row.reasoning for row in store.report(by="owner")}
    (mine,) = store.for_owner("ann").report(by="session")
    day = datetime.now(UTC)

    assert by_owner == {"ann": 15, "bob": 15}
    assert (mine.session, mine.input, mine.output) == ("chat", 10, 20)
    assert {row.model for row in store.report(by="model")} == {None, "deepseek-chat"}
    assert store.report(until=datetime(2001, 1, 1, tzinfo=UTC)) == []
    assert sum(row.output for row in store.report(by="day", since=day.replace(year=2001))) == 40


def test_verify_finds_nothing_in_a_sound_store(store: rs.Store) -> None:
    """And says how much it went through."""
    talk(store.session("chat", create=True))

    assert (store.verify().sessions, store.verify().messages, store.verify().ok) == (1, 2, True)


# Erasing


def test_only_the_reasoning_of_a_session_can_be_erased(
    embedded: rs.Store, sqlite_path: Path
) -> None:
    """The chat stays; no byte of the thought does."""
    session = embedded.session("chat", create=True)
    talk(session)

    done = session.erase(only="reasoning")

    assert done.thinking_blocks == 1
    assert [item.message.text for item in session.history()] == ["Is 91 prime?", "No."]
    assert session.usage().raw == session.usage().effective
    assert b"7 * 13" not in sqlite_path.read_bytes()


def test_an_erased_message_leaves_its_place(store: rs.Store) -> None:
    """Its position, its role, and the status that says so."""
    session = store.session("chat", create=True)
    talk(session)

    session.erase(2)

    item = session.get(2)
    assert (item.message.role, item.message.status, item.message.blocks) == (
        "assistant",
        "erased",
        (),
    )


def test_an_owner_is_erased_alone(store: rs.Store) -> None:
    """No other's is touched."""
    talk(store.for_owner("ann").session("chat", create=True))
    talk(store.for_owner("bob").session("chat", create=True))

    done = store.for_owner("ann").erase()

    assert (done.sessions, done.messages) == (1, 2)
    assert store.for_owner("ann").sessions().items == []
    assert len(store.for_owner("bob").sessions().items) == 1


def test_metadata_and_titles_are_replaced(store: rs.Store) -> None:
    """And are there for the next who opens the session."""
    session = store.session("chat", create=True, metadata={"a": 1})
    session.set_metadata({"b": [2]})
    session.rename("Primes")

    found = store.session("chat")
    assert (found.metadata, found.title, session.title) == ({"b": [2]}, "Primes", "Primes")


def test_a_window_by_tokens_keeps_the_latest(store: rs.Store) -> None:
    """As many whole messages as fit, counted with their thinking."""
    session = store.session("chat", create=True)
    session.append([rs.user("word " * 50), rs.assistant("Yes."), rs.user("And now?")])
    last = session.history()[1:]

    assert session.history(tokens=sum(item.tokens for item in last)) == last


def test_the_asynchronous_face_keeps_and_moves_too(tmp_path: Path) -> None:
    """The same verbs, awaited; lines in and out, from a list or from a stream."""

    async def work() -> None:
        async with (
            rs.AsyncStore(f"sqlite:///{tmp_path / 'one.db'}") as one,
            rs.AsyncStore("sqlite://") as two,
            rs.AsyncStore("sqlite://") as three,
        ):
            mine = one.for_owner("ann")
            chat = await mine.session("chat", create=True)
            await chat.append([rs.user("Is 91 prime?"), rs.assistant(thinking("7 * 13"), "No.")])
            await mine.settings.profiles.set("deep", {"reasoning.effort": "high"})
            await mine.settings.profiles.change("deep", {"reasoning.floor": "off"})
            await chat.settings.use("deep")
            lines = [line async for line in one.export_lines()]

            async def streamed() -> AsyncIterator[str]:
                for line in lines:
                    await asyncio.sleep(0)
                    yield line

            assert (await two.import_lines(lines)).messages == 2
            assert (await three.import_lines(streamed())).messages == 2
            assert [line async for line in three.export_lines()] == lines
            assert (await one.backup(tmp_path / "copy.db")).messages == 2
            assert (await one.verify()).ok
            used = (await chat.budget()).used
            assert [row.counted for row in await one.report(by="owner")] == [used]
            assert (await chat.erase(2, only="reasoning")).thinking_blocks == 1
            assert (await mine.erase()).sessions == 1

    asyncio.run(work())


def test_what_had_arrived_when_the_store_was_closed_is_kept(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A server that stops closes its store while replies are still arriving."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    event = {"choices": [{"index": 0, "delta": {"content": "Half an "}}]}
    with rs.Store(url) as store:
        chunks = iter(store.session("chat", create=True).record([event, event], provider="openai"))
        next(chunks)

    with rs.Store(url) as store:
        assert [item.message.text for item in store.session("chat").history()] == ["Half an "]
    with pytest.raises(rs.InvalidCall, match="closed"):
        list(chunks)


def test_a_cancelled_import_waits_for_no_further_line(url: str) -> None:
    """Its source may never end; what was taken in is there when it is called again."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            chat = await opened.for_owner("a").session("chat", create=True)
            await chat.append(rs.user("Is 91 prime?"))
            lines = [line async for line in opened.export_lines()]
            asked = asyncio.Event()

            async def endless() -> AsyncIterator[str]:
                for line in lines[:3]:
                    yield line
                asked.set()
                await asyncio.Event().wait()

            importing = asyncio.create_task(opened.for_owner("b").import_lines(endless()))
            await asked.wait()
            importing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(importing, 120)

            async def whole() -> AsyncIterator[str]:
                for line in lines:
                    yield line

            assert (await opened.for_owner("b").import_lines(whole())).sessions == 1

    asyncio.run(work())
