"""What is read for a request is kept while it is good, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger import reading
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.viewing import Views
from reasoning_store.wire.pages import Page

HOST: dict[str, Any] = {"model": "some-model"}
KEEP = {"reasoning.includeInContext": True}


@pytest.fixture
def session(url: str) -> Iterator[rs.Session]:
    with rs.Store(url) as store:
        chat = store.session("chat", create=True)
        for number in range(5):
            turn(chat, number)
        yield chat


def turn(session: rs.Session, number: int) -> None:
    thought = rs.ThinkingBlock(thought=f"thought {number}", source_field="reasoning_content")
    session.append([rs.user(f"question {number}?"), rs.assistant(thought, f"answer {number}")])


def sent(session: rs.Session, **asked: Any) -> str:
    return str(session.build_request(**{**HOST, **asked}).body["messages"])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """How many messages were read, and whether with their thinking, each time."""
    seen: list[tuple[int, bool]] = []
    original = reading.of_segments

    def of_segments(*given: Any, thinking: bool) -> Any:
        rows = original(*given, thinking=thinking)
        if rows:
            seen.append((len(rows), thinking))
        return rows

    monkeypatch.setattr(reading, "of_segments", of_segments)
    return seen


def test_the_next_request_reads_only_what_came_since(
    session: rs.Session, read: list[tuple[int, bool]]
) -> None:
    """However long the conversation was before."""
    first = sent(session, settings=KEEP)
    session.append(rs.user("and now?"))
    second = sent(session, settings=KEEP)

    assert read == [(10, True), (1, True)]
    assert second == first[:-1] + ", " + str({"role": "user", "content": "and now?"}) + "]"


@pytest.mark.parametrize("settings", [None, KEEP], ids=["withheld", "kept"])
def test_the_next_request_writes_no_closed_turn_again(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Also when the one before was sent and answered, which is what ``cache_break`` asks."""
    written: list[int] = []
    original = Page.add

    def add(page: Page, messages: Any) -> None:
        messages = list(messages)
        written.append(len(messages))
        original(page, messages)

    request = session.build_request(settings=settings, **HOST)
    delta = {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}
    with session.record([delta], request=request) as reply:
        for _ in reply:
            pass
    session.append(rs.user("and now?"))
    monkeypatch.setattr(Page, "add", add)

    after = session.build_request(settings=settings, **HOST)

    assert sum(written) == 4, "what came, and the turn that was open"
    assert after.cache_break == len(request.body["messages"])
    assert after.body["messages"][:-2] == request.body["messages"]


def test_a_setting_that_was_another_when_last_sent_costs_no_second_read(
    session: rs.Session, url: str, read: list[tuple[int, bool]]
) -> None:
    """What was sent then and what is sent now are made of one reading."""
    request = session.build_request(settings=KEEP, **HOST)
    delta = {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}
    with session.record([delta], request=request) as reply:
        for _ in reply:
            pass
    read.clear()
    with rs.Store(url) as other:
        other.session("chat").build_request(**HOST)

    assert read == [(11, True)]


def test_what_was_handed_out_is_the_callers(session: rs.Session) -> None:
    """Whatever is done to a body, the next is what it would be."""
    first = session.build_request(settings=KEEP, **HOST).body["messages"]
    for message in first:
        message.clear()

    assert "thought 0" in sent(session, settings=KEEP)


def test_thinking_that_cannot_go_is_not_read(
    session: rs.Session, read: list[tuple[int, bool]]
) -> None:
    """A request that strips reasoning reads that of its open turn only."""
    request = session.build_request(**HOST)

    assert read == [(8, False), (2, True)]
    assert [verdict.kept for verdict in request.verdicts] == [False] * 5


def test_a_setting_that_keeps_more_reads_more(
    session: rs.Session, read: list[tuple[int, bool]]
) -> None:
    """EC-004: a change in the middle of a conversation finds every thought."""
    assert "thought 0" not in sent(session)
    assert "thought 0" in sent(session, settings=KEEP)
    assert "thought 0" not in sent(session)

    assert read == [(8, False), (2, True), (10, True)]


def test_what_if_reads_no_thought(session: rs.Session, read: list[tuple[int, bool]]) -> None:
    """It counts and renders nothing."""
    session.what_if(**HOST)

    assert read == [(10, False)]


def test_a_stored_thought_never_goes_out_by_its_kind(session: rs.Session) -> None:
    """What stands in the place of a thought that was not read reaches no request."""
    assert "unread" not in sent(session)
    assert "unread" not in sent(session, settings=KEEP)


@pytest.mark.parametrize("only", [None, "reasoning"])
def test_what_somebody_else_erased_is_not_sent(session: rs.Session, url: str, only: Any) -> None:
    """Another process or handle needs to tell nobody."""
    assert "thought 0" in sent(session, settings=KEEP)
    with rs.Store(url) as other:
        other.session("chat").erase(2, only=only)

    assert "thought 0" not in sent(session, settings=KEEP)
    assert ("answer 0" in sent(session, settings=KEEP)) == (only is not None)


@pytest.mark.parametrize("erase", ["message", "session", "owner"])
def test_what_is_read_while_it_is_erased_is_not_kept(
    session: rs.Session, url: str, monkeypatch: pytest.MonkeyPatch, erase: str
) -> None:
    """A request that was asked for before may have it; nothing here has it after."""
    verb = f"erase_{erase}"
    original = getattr(Ledger, verb)

    def erasing(*given: Any, **named: Any) -> Any:
        assert "thought 0" in sent(session, settings=KEEP)
        return original(*given, **named)

    monkeypatch.setattr(Ledger, verb, erasing)
    views = session._workings.views
    if erase == "owner":
        with rs.Store(url) as store:
            monkeypatch.setattr(store._workings, "views", views)
            store.erase()
    else:
        session.erase(*([2] if erase == "message" else []))

    assert not views._views
    assert views._weight == 0


def test_what_was_read_before_an_erasure_is_not_kept_after_it(
    session: rs.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the request takes that read it."""
    original = Ledger.view

    def view(*given: Any, **named: Any) -> Any:
        rows = original(*given, **named)
        monkeypatch.setattr(Ledger, "view", original)
        session.branch(1).erase(2)
        return rows

    monkeypatch.setattr(Ledger, "view", view)

    assert "thought 0" in sent(session, settings=KEEP)
    assert not session._workings.views._views
    assert "thought 0" not in sent(session, settings=KEEP)


def test_a_session_that_was_erased_and_made_again_is_another(session: rs.Session, url: str) -> None:
    """Nothing of the first is sent in the second."""
    sent(session)
    with rs.Store(url) as other:
        other.session("chat").erase()
        again = other.session("chat", create=True)
        for number in range(5, 11):
            turn(again, number)

    assert "question 0" not in sent(session)


def test_a_summary_of_somebody_elses_is_seen(session: rs.Session, url: str) -> None:
    """And so is its undoing."""
    sent(session)
    with rs.Store(url) as other:
        chat = other.session("chat")
        plan = chat.compression(limit=60, threshold=0.5, **HOST)
        made = chat.compact(plan, summary="They talked.")
        assert made is not None
        assert "They talked." in sent(session)
        chat.undo(made.id)
        assert "They talked." not in sent(session)


def test_each_branch_has_its_own(session: rs.Session) -> None:
    """A fork's request is not its parent's."""
    fork = session.fork(at=3)
    fork.append(rs.user("otherwise?"))

    assert "otherwise?" in sent(fork)
    assert "otherwise?" not in sent(session)
    assert "answer 4" not in sent(fork)


def test_what_is_kept_is_bounded(url: str) -> None:
    """The sessions that were asked for last stay; one that is too large stays alone."""
    with rs.Store(url) as store:
        sessions = [store.session(f"chat {n}", create=True) for n in range(4)]
        for chat in sessions:
            turn(chat, 0)
        ledger: Ledger = store._workings.ledger
        views = Views(ledger, most=1_500)
        for chat in sessions:
            views.of(chat._row, 1)
        assert [at for at, _ in views._views] == [chat._row.key for chat in sessions[-2:]]

        sessions[0].append(rs.user("word " * 5_000))
        assert len(views.of(sessions[0]._row, 1).items) == 3
        assert [at for at, _ in views._views] == [sessions[0]._row.key]


def test_what_is_kept_weighs_what_it_would_if_it_were_read_now(session: rs.Session) -> None:
    """However it came to be: a request is the conversation once more."""
    views = session._workings.views
    sent(session, settings=KEEP)
    for number in range(5, 12):
        turn(session, number)
        sent(session, settings=KEEP)
    grown = views._weight
    views.forget_all()
    assert views._weight == 0

    sent(session, settings=KEEP)

    assert grown == views._weight


def test_what_was_sent_otherwise_weighs_too(session: rs.Session) -> None:
    """It is kept for ``cache_break``, and shares nothing with a request to another host."""
    request = session.build_request(settings=KEEP, **HOST)
    delta = {"choices": [{"index": 0, "delta": {"content": "Yes."}}]}
    with session.record([delta], request=request) as reply:
        list(reply)
    sent(session, settings=KEEP)
    alike = session._workings.views._weight
    sent(session, settings=KEEP, provider="mistral")

    assert session._workings.views._weight == alike // 2 * 3


def test_a_thought_that_is_not_read_weighs_nothing(url: str) -> None:
    """It is not kept."""
    with rs.Store(url) as store:
        views = store._workings.views
        chat = store.session("chat", create=True)
        thought = rs.ThinkingBlock(thought="hm " * 5_000)
        chat.append([rs.user("Well?"), rs.assistant(thought, "So."), rs.user("And?")])
        sent(chat)
        assert views._weight < 5_000
        sent(chat, settings=KEEP)
        assert views._weight > 20_000
