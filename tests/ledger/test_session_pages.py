"""Pages of sessions: filters, counts and previews, and metadata that two writers change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

import reasoning_store as rs

DAY = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 10)]


@pytest.fixture
def mine(url: str) -> Any:
    with rs.Store(url) as store:
        yield store.for_owner("user-7")


def add(mine: Any, id: str, day: int, text: str = "Hello.", **about: Any) -> Any:
    session = mine.session(id, create=True, **about)
    session.append(rs.user(text), created_at=DAY[day])
    return session


def ids(page: Any) -> list[str]:
    return [one.id for one in page.items]


def test_a_page_holds_what_its_filters_say(mine: Any) -> None:
    """Together, each over all pages, latest first; another owner's sessions are never there."""
    add(mine, "a", 1, title="Weather in OSLO", metadata={"model": "m", "n": 1})
    add(mine, "b", 2, title="Stra\u00dfe", metadata={"model": "m", "n": True})
    add(mine, "c", 3, metadata={"model": "other"}).archive()
    add(mine, "d", 4, title="Oslo again", metadata={"model": "m", "deep": {"x": [1, 2]}})

    assert ids(mine.sessions()) == ["d", "b", "a"]
    assert ids(mine.sessions(archived=True)) == ["c"]
    assert ids(mine.sessions(archived=None)) == ["d", "c", "b", "a"]
    assert ids(mine.sessions(title="oslo")) == ["d", "a"]
    assert ids(mine.sessions(title="STRASSE")) == ["b"]
    assert ids(mine.sessions(metadata={"model": "m"})) == ["d", "b", "a"]
    assert ids(mine.sessions(metadata={"n": 1})) == ["a"]
    assert ids(mine.sessions(metadata={"deep": {"x": [1, 2]}, "model": "m"})) == ["d"]
    assert ids(mine.sessions(metadata={"none": None})) == []
    assert ids(mine.sessions(since=DAY[2], before=DAY[4])) == ["b"]
    assert ids(mine.sessions(archived=None, before=DAY[3], title="a")) == ["b", "a"]
    first = mine.sessions(title="oslo", limit=1)
    assert ids(first) == ["d"]
    rest = mine.sessions(title="oslo", limit=1, after=first.next)
    assert (ids(rest), rest.next) == (["a"], None)


def test_a_filter_finds_one_among_many(mine: Any) -> None:
    """However far back it is, page after page."""
    add(mine, "wanted", 0, title="needle")
    for number in range(230):
        mine.session(f"s{number}", create=True, title="hay")

    assert ids(mine.sessions(title="needle")) == ["wanted"]
    assert len(mine.sessions(limit=300).items) == 231


def test_each_item_has_a_count_and_a_preview(mine: Any) -> None:
    """Of its current branch, bounded; nothing of them is read for a session opened by its id."""
    long = add(mine, "long", 1, "x" * 1000)
    fork = long.fork(at=2)
    mine.session("empty", create=True)
    add(mine, "call", 2).append(
        rs.assistant(
            rs.ThinkingBlock(thought="secret"), rs.ToolCallBlock(id="c", name="f", parameters={})
        )
    )
    add(mine, "parts", 3).append(
        rs.assistant(
            rs.TextBlock(text="No, ", provider_metadata={"id": "x"}),
            rs.TextBlock(text="91 is not."),
        )
    )
    long.append([rs.user("two"), rs.user("three")])

    found = {one.id: (one.message_count, one.preview) for one in mine.sessions().items}
    assert found["long"] == (3, "three")
    long.activate(fork.branch_id)
    again = {one.id: (one.message_count, one.preview) for one in mine.sessions().items}
    assert again == {
        "long": (1, "x" * 200),
        "empty": (0, None),
        "call": (2, None),
        "parts": (2, "91 is not."),
    }
    opened = mine.session("long")
    assert (opened.message_count, opened.preview) == (None, None)


def test_a_preview_holds_what_is_stored(url: str) -> None:
    """Masked, like everything stored; gone, once it was erased."""
    with rs.Store(url, masker=rs.SecretMasker(["hunter22"])) as store:
        session = store.session("s", create=True)
        session.append(rs.user("the word is hunter22"))
        (masked,) = store.sessions().items
        session.erase(1)
        (erased,) = store.sessions().items

    assert "hunter22" not in (masked.preview or "")
    assert (masked.preview or "").startswith("the word is ")
    assert (erased.message_count, erased.preview) == (1, None)


def test_a_session_says_when_it_was_made_and_whether_it_is_archived(mine: Any) -> None:
    """By its handle, and by the page."""
    session = add(mine, "s", 1)
    assert not session.archived
    session.archive()
    (listed,) = mine.sessions(archived=True).items

    assert session.archived
    assert listed.archived
    assert listed.created_at == session.created_at >= session.updated_at


def test_metadata_is_merged_key_by_key(mine: Any) -> None:
    """None removes a key; what is no JSON is refused, and nothing changed."""
    session = mine.session("s", create=True, metadata={"a": 1, "b": {"x": 1}})

    session.update_metadata({"b": {"y": 2}, "c": "new", "a": None})
    with pytest.raises(rs.InvalidCall, match="metadata"):
        session.update_metadata({"d": object()})

    assert session.metadata == mine.session("s").metadata == {"b": {"y": 2}, "c": "new"}


def test_two_writers_of_metadata_lose_nothing(mine: Any) -> None:
    """Each changes keys of its own, at once, on handles of its own."""
    mine.session("s", create=True)
    handles = [mine.session("s") for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda n: [handles[n].update_metadata({f"{n}.{i}": i}) for i in range(10)], range(4)
            )
        )

    assert mine.session("s").metadata == {f"{n}.{i}": i for n in range(4) for i in range(10)}


def test_a_bad_filter_is_refused_by_its_name(mine: Any) -> None:
    """With a named error."""
    bad: list[dict[str, Any]] = [
        {"title": 5},
        {"metadata": "x"},
        {"since": "yesterday"},
        {"before": 5},
        {"archived": "yes"},
        {"limit": 0},
        {"after": "x"},
    ]
    for given in bad:
        with pytest.raises(rs.InvalidCall, match=next(iter(given))):
            mine.sessions(**given)
