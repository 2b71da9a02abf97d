"""Search: what an owner's sessions say and think, found by words, on both engines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation import search_query, search_words
from reasoning_store.ledger import audit
from reasoning_store.ledger.database.statement import Statement, driver
from reasoning_store.ledger.searching import search, search_rows
from reasoning_store.results import Hit, Page
from tests.properties import each, examples


def places(page: Page[Hit]) -> list[tuple[str, int | None]]:
    return [(hit.session, hit.position) for hit in page.items]


TEXTS = [
    "Is 91 prime?",
    "No: 91 is 7 * 13, and the primes near it are 89 and 97.",
    "L'\u00c9t\u00e9 \u00e0 Ath\u00e8nes, stra\u00dfe snake_case don't",
    "\u6771\u4eac\u90fd\u77e5\u4e8b\u9078\u6319\u306f\u3044\u3064\u3067\u3059\u304b",
    "\uc11c\uc6b8\ub300\ud559\uad50 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a",
    "\uff21\uff22\uff23 \u0939\u093f\u0928\u094d\u0926\u0940 \u0441\u0451\u043b\u0430",
]
QUERIES = {
    "prime": [2, 1],
    '"prime"': [1],
    "PRIME 91": [2, 1],
    '"91 prime"': [1],
    '"prime 91"': [],
    "91 -primes": [1],
    '91 -"is 7"': [1],
    "is": [2, 1],
    "i": [],
    "ete athenes": [3],
    "STRASSE": [3],
    "case snake": [3],
    "snake_cas": [3],
    "don't": [3],
    '"don t"': [3],
    "\u6771": [4],
    "\u4eac\u90fd": [4],
    "\u90fd\u77e5\u4e8b \u6771\u4eac": [4],
    "\u6771\u90fd": [],
    "\u304b": [4],
    "\ub300\ud559": [5],
    "\u0e2a\u0e14\u0e35": [5],
    "abc": [6],
    "\u0939\u093f\u0928\u094d\u0926\u0940": [6],
    "\u0421\u0415\u041b\u0410": [6],
    "prime OR nothing": [],
    "NEAR(prime 91)": [],
    "pri*": [2, 1],
    'words : prime & 91 | ! "': [],
    "\u201cis 91\u201d": [1],
}


@each("query", QUERIES)
def test_a_query_is_what_a_person_types(query: str) -> None:
    """Words, beginnings of words, quotes, a minus; every script; and what looks like operators."""
    found = search_query.parse(query)
    wanted = [at for at, text in enumerate(TEXTS, 1) if found.places(text)]

    assert wanted[::-1] == QUERIES[query]


def test_each_engine_finds_the_same(store: rs.Store) -> None:
    session = store.session("chat", create=True)
    session.append([rs.user(text) for text in TEXTS])

    assert {
        query: [position for _, position in places(store.search(query))] for query in QUERIES
    } == QUERIES


words = st.sampled_from(
    ["a", "an", "ant", "anthem", "\u6771", "\u4eac", "\u00e9t\u00e9", "ete", "x_y"]
)
joints = st.sampled_from([" ", "-", '"', "'", " -", "* ", ":", " OR ", "(", ")", "\\", "\0"])
prose = st.lists(words | joints, max_size=8).map("".join)


@examples(60)
@given(texts=st.lists(prose, min_size=1, max_size=5), query=prose | st.text(max_size=20))
def test_the_index_leaves_out_nothing_that_a_look_at_each_text_finds(
    store: rs.Store, texts: list[str], query: str
) -> None:
    """Whatever is in them: no text is a syntax error, and no text is missed or too much."""
    session = store.session()
    session.append([rs.user(text) for text in texts])
    try:
        looked_for = search_query.parse(query)
    except rs.InvalidCall:
        with pytest.raises(rs.InvalidCall, match=r"^text: "):
            store.search(query)
        return

    page = store.search(query, limit=1000)

    assert sorted(hit.position or 0 for hit in page.items if hit.session == session.id) == [
        at for at, text in enumerate(texts, 1) if looked_for.places(text)
    ]


@given(text=st.text(max_size=40) | prose, start=st.integers(0, 40), length=st.integers(1, 10))
@examples(200)
def test_the_places_of_words_are_places_in_the_text(text: str, start: int, length: int) -> None:
    """In order and apart; and the words are those that are indexed, whatever the script."""
    known = list(search_words.words(text))

    assert all(0 <= word.start < word.end <= len(text) and word.text for word in known)
    assert {word.text for word in known} == {*search_words.distinct_words(text)}
    for word in known:
        assert search_query.parse(f'"{text[word.start : word.end]}"').places(text)


def test_words_in_a_row_are_found_wherever_their_text_is_stored(store: rs.Store) -> None:
    """In one column or in the JSON of several blocks, with signs between them, in a thought."""
    thought = rs.ThinkingBlock
    session = store.session("chat-42", create=True)
    session.append(
        [
            rs.user("A red-green tie."),
            rs.user("Red", "green"),
            rs.user("red \u2014 green \u2713"),
            rs.user("caf\u00e9 red green"),
            rs.assistant(thought(thought="red green"), "Yes."),
            rs.assistant(thought(thought="red"), thought(thought="green"), "No."),
            rs.user("red and green, green red, bred green, red greens"),
        ]
    )
    found = store.search('"red green"', within="all").items

    assert [hit.position for hit in found] == [6, 5, 4, 3, 2, 1]


def test_only_the_owners_sessions_are_searched(store: rs.Store) -> None:
    """Not in answers, thoughts or titles; not for a word that both have."""
    for owner in ("one", "other"):
        session = store.for_owner(owner).session("chat", create=True, title=f"canary of {owner}")
        session.append(rs.user(f"canary {owner}"))
        session.append(rs.assistant(rs.ThinkingBlock(thought=f"canary {owner}"), "canary"))

    page = store.for_owner("one").search("canary", within="all", branches="all")
    assert len(page.items) == 4
    assert store.for_owner("one").search("canary other", within="all").items == []
    assert store.search("canary", within="all").items == []
    assert [one.text for one in store.for_owner("one").thoughts().items] == ["canary one"]


def test_within_answers_thinking_or_all(store: rs.Store) -> None:
    """What people are shown: no tool's answer, no system prompt, no hidden or encrypted thought."""
    session = store.session("chat", create=True, title="gamma")
    hidden = rs.ThinkingBlock(thought="gamma", is_hidden=True)
    session.append(
        [
            rs.system("gamma"),
            rs.user("gamma"),
            rs.assistant(rs.ThinkingBlock(thought="gamma"), "gamma", hidden),
            rs.assistant(hidden, rs.ThinkingBlock(encrypted="gamma"), "no"),
        ]
    )

    def kinds(within: Any) -> list[tuple[str, int | None]]:
        found = store.search("gamma", within=within).items
        return sorted([(hit.kind, hit.position) for hit in found], key=str)

    answers = [("answer", 2), ("answer", 3)]
    assert kinds("answers") == [*answers, ("title", None)]
    assert kinds("thinking") == [("thinking", 3)]
    assert kinds("all") == [*answers, ("thinking", 3), ("title", None)]


def test_a_hit_says_where_it_is_and_shows_the_words(store: rs.Store) -> None:
    session = store.session("chat", create=True, title="A title")
    before = "word " * 40
    stored = session.append(rs.user(f"{before}\nThe capital\tof Norway is Oslo. {before}"))

    (hit,) = store.search("capital oslo").items

    assert (hit.session, hit.title, hit.kind) == ("chat", "A title", "answer")
    assert (hit.id, hit.position, hit.branch) == (stored.id, 1, 1)
    assert (hit.role, hit.created_at, hit.is_current) == ("user", stored.created_at, True)
    assert "The **capital** of Norway is **Oslo**." in hit.marked()
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["capital", "Oslo"]
    assert hit.snippet[0] == hit.snippet[-1] == "\u2026"
    assert len(hit.snippet) < 250


def test_a_branch_that_was_left_is_found_when_it_is_asked_for(store: rs.Store) -> None:
    """What branches share is found once, on the current one."""
    session = store.session("chat", create=True)
    session.append([rs.user("delta shared"), rs.assistant("delta left"), rs.user("delta left too")])
    now = session.edit(2, rs.assistant("delta new"))

    current = store.search("delta").items
    assert [(hit.position, hit.branch, hit.is_current) for hit in current] == [
        (2, 2, True),
        (1, 2, True),
    ]
    everywhere = store.search("delta", branches="all").items
    assert [(hit.position, hit.branch, hit.is_current) for hit in everywhere] == [
        (2, 2, True),
        (3, 1, False),
        (2, 1, False),
        (1, 2, True),
    ]
    store.session("chat").activate(1)
    assert [hit.position for hit in store.search("delta").items] == [3, 2, 1]
    assert now is not None


def test_pages_give_each_hit_once(store: rs.Store) -> None:
    """Also of one time, of which an import can have any number."""
    at = datetime(1969, 5, 1, tzinfo=UTC)
    for n in range(3):
        session = store.session(f"chat-{n}", create=True)
        session.append([rs.user(f"epsilon {m}") for m in range(300)], created_at=at)

    seen: list[tuple[str, int | None]] = []
    after = None
    while True:
        page = store.search("epsilon", limit=90, after=after)
        seen += places(page)
        after = page.next
        if after is None:
            break

    assert len(seen) == len({*seen}) == 900


def test_a_search_that_looks_at_many_texts_goes_on_with_the_next_page(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that are common, and rarely side by side: a page may be short, or have no hit."""
    monkeypatch.setattr(search, "_MOST_LOOKED_AT", 50)
    session = store.session("chat", create=True)
    session.append([rs.user("sigma tau"), *[rs.user("tau sigma")] * 200])

    found: list[tuple[str, int | None]] = []
    pages, after = 0, None
    while pages == 0 or after is not None:
        page = store.search('"sigma tau"', after=after)
        found, pages, after = [*found, *places(page)], pages + 1, page.next

    assert found == [("chat", 1)]
    assert pages > 1


def test_a_title_is_found_by_the_words_that_it_has_now(store: rs.Store) -> None:
    session = store.session("chat", create=True, title="zeta")
    assert places(store.search("zeta")) == [("chat", None)]

    session.rename("eta")
    assert store.search("zeta").items == []
    assert places(store.search("eta")) == [("chat", None)]
    session.rename(None)
    assert store.search("eta").items == []


ERASED: dict[str, Callable[[rs.Store, rs.Session], object]] = {
    "message": lambda store, session: session.erase(2),
    "reasoning": lambda store, session: session.erase(2, only="reasoning"),
    "all reasoning": lambda store, session: session.erase(only="reasoning"),
    "session": lambda store, session: session.erase(),
    "owner": lambda store, session: store.erase(),
}


@pytest.mark.parametrize("what", ERASED)
def test_what_was_erased_is_not_found(store: rs.Store, what: str) -> None:
    """In the index or not yet in it, and nothing else goes."""
    other = store.for_owner("other").session("chat", create=True)
    other.append(rs.user("theta iota"))
    store.for_owner("other").search("theta")
    for is_indexed in (True, False):
        session = store.session(f"chat {is_indexed}", create=True, title="theta")
        session.append(rs.user("theta stays"))
        session.append(rs.assistant(rs.ThinkingBlock(thought="iota"), "theta goes"))
        if is_indexed:
            store.search("theta")
        ERASED[what](store, session)

        found = [(hit.kind, hit.position) for hit in store.search("theta", within="all").items]
        assert store.search("iota", within="all").items == []
        stays = {"message": [1, None], "session": [], "owner": []}.get(what, [2, 1, None])
        assert [position for _, position in found] == stays
        assert store.verify().problems == ()
        if stays:
            session.erase()
    assert len(store.for_owner("other").search("theta iota").items) == 1


@pytest.mark.parametrize("is_secure", [True, False])
def test_no_byte_of_an_erased_word_is_left_in_the_index(sqlite_path: Path, is_secure: bool) -> None:
    """Whichever words stand around it; also where the index does not remove them by itself."""
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        mode = "INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', ?)"
        store._state.ledger.database.write(
            lambda connection: driver(connection).execute(mode, (int(is_secure),))
        )
        for n in range(60):
            session = store.session(f"chat-{n}", create=True, title=f"xcanary{n}title")
            session.append(
                [
                    rs.user(
                        f"xcanary{n}word{m} common " + " ".join(f"w{n}{m}{k}" for k in range(40))
                    )
                    for m in range(8)
                ]
            )
            store.search("common", limit=1)
        for n in (7, 33, 0, 59):
            session = store.session(f"chat-{n}")
            session.erase(3)
            assert f"xcanary{n}word2".encode() not in everything(sqlite_path)
            session.erase()
            assert f"xcanary{n}".encode() not in everything(sqlite_path).replace(
                f"xcanary{n}".encode() + b"0", b""
            )
        assert len(store.search("xcanary31word").items) == 8
        assert store.search("xcanary33word").items == []
        assert store.verify().problems == ()


def everything(path: Path) -> bytes:
    return b"".join([file.read_bytes() for file in sorted(path.parent.iterdir()) if file.is_file()])


def test_a_catch_up_that_was_broken_off_goes_on(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is a transaction of its own; what it did stays done, and nothing is done twice."""
    monkeypatch.setattr(search, "_STEP", 10)
    for n in range(4):
        session = store.session(f"chat-{n}", create=True, title=f"title {n}")
        session.append([rs.user(f"kappa {m}") for m in range(25)])
    write = store._state.ledger.database.write
    left = 3

    def broken(work: Any, **given: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return write(work, **given)

    with monkeypatch.context() as patched:
        patched.setattr(store._state.ledger.database, "write", broken)
        with pytest.raises(KeyboardInterrupt):
            store.search("kappa")

    assert len(store.search("kappa", limit=1000).items) == 100
    assert store.verify().problems == ()


def test_appends_and_searches_at_once_lose_nothing(url: str) -> None:
    """Two programs search while two append: each message is found, and once."""
    failed: list[BaseException] = []

    def tried(work: Callable[[rs.Store], None]) -> None:
        try:
            with rs.Store(url) as store:
                work(store)
        except BaseException as error:
            failed.append(error)

    def append(name: str) -> Callable[[rs.Store], None]:
        def work(store: rs.Store) -> None:
            session = store.session(name, create=True)
            for n in range(40):
                session.append(rs.user(f"lambda {n}"))

        return work

    def look(store: rs.Store) -> None:
        for _ in range(25):
            found = places(store.search("lambda", limit=1000))
            assert len(found) == len({*found})

    jobs = [append("a"), append("b"), look, look]
    threads = [threading.Thread(target=tried, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    with rs.Store(url) as store:
        assert len({*places(store.search("lambda", limit=1000))}) == 80
        assert store.verify().problems == ()


REMOVALS: dict[str, Callable[[rs.Store, rs.Session], object]] = {
    "delete": lambda _, session: session.delete(),
    "delete the messages": lambda _, session: session.delete(only="messages"),
    "delete the messages and go on": lambda _, session: (
        session.delete(only="messages"),
        session.append([rs.user("tau")] * 3),
    ),
    "delete the owner": lambda store, _: store.for_owner("me").delete(),
    "erase": lambda _, session: session.erase(),
    "erase a message": lambda _, session: session.erase(1),
    "erase the messages": lambda _, session: session.erase(only="messages"),
    "erase the reasoning": lambda _, session: session.erase(only="reasoning"),
}


def removable(store: rs.Store) -> rs.Session:
    session = store.for_owner("me").session("chat", create=True)
    thought = rs.ThinkingBlock(thought="sigma", source_field="reasoning_content")
    session.append([rs.user("sigma"), rs.assistant(thought, "sigma")])
    return session


@each("what", REMOVALS)
def test_verify_finds_no_fault_in_the_process_that_searched_and_removed(
    tmp_path: Path, what: str
) -> None:
    """A connection that was read from before has parts of the index that are older."""
    with rs.Store(f"sqlite:///{tmp_path / what}") as store:
        session = removable(store)
        store.for_owner("me").search("sigma")
        REMOVALS[what](store, session)

        assert store.verify().problems == ()


@pytest.mark.parametrize("what", REMOVALS)
def test_a_search_beside_a_removal_finds_what_is_there(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Also where the search has read before which messages the index lacks."""
    session = removable(store)
    unindexed = search_rows.unindexed_parts
    removals = [REMOVALS[what]]

    def removing(*given: Any, **named: Any) -> Any:
        found = unindexed(*given, **named)
        while removals:
            thread = threading.Thread(target=removals.pop(), args=(store, session))
            thread.start()
            thread.join()
        return found

    monkeypatch.setattr(search_rows, "unindexed_parts", removing)
    found = store.for_owner("me").search("sigma", within="all").items

    kept = {"erase a message": [2, 2], "erase the reasoning": [2, 1]}
    assert [hit.position for hit in found] == kept.get(what, [])
    assert store.verify().problems == ()


@pytest.mark.parametrize("removed", [1, 40])
def test_verify_beside_a_removal_finds_no_fault(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    """Also where a branch has the number of one that it has read, and begins elsewhere."""
    read = audit.session
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("chat", create=True)
        session.append([rs.user("sigma")] * 4)
        session.fork(at=2).append([rs.user("tau")] * 4)

        def removing(*given: Any) -> Any:
            monkeypatch.setattr(audit, "session", read)
            found = read(*given)
            session.delete(only="messages")
            session.append([rs.user("upsilon")] * removed)
            session.fork(at=removed).append(rs.user("phi"))
            return found

        monkeypatch.setattr(audit, "session", removing)
        assert store.verify().problems == ()
        assert store.verify().problems == ()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    """Every statement that is run, in order."""
    run: list[Statement] = []
    bound = Statement._bound

    def noting(self: Statement, *given: Any) -> Any:
        run.append(self)
        return bound(self, *given)

    monkeypatch.setattr(Statement, "_bound", noting)
    return run


def test_a_page_of_hits_is_read_in_as_many_statements_as_one_hit(
    store: rs.Store, statements: list[Statement]
) -> None:
    """One for the titles, the messages and the thoughts of all its sessions."""
    thought = rs.ThinkingBlock(thought="chi", source_field="reasoning_content")
    for number in range(20):
        session = store.session(f"chat-{number}", create=True, title=f"chi {number}")
        session.append([rs.user("chi"), rs.assistant(thought, "psi", origin=rs.Origin(model="m"))])
    looks: dict[str, Callable[[int], Any]] = {
        "search": lambda limit: store.search("chi", limit=limit),
        "everywhere": lambda limit: store.search("chi", within="all", limit=limit),
        "thoughts": lambda limit: store.thoughts(limit=limit),
        "thoughts of a model": lambda limit: store.thoughts(model="m", limit=limit),
    }
    store.search("chi")
    counted: dict[str, list[int]] = {}
    for name, look in looks.items():
        for limit in (1, 20):
            statements.clear()
            assert len(look(limit).items) == limit
            counted.setdefault(name, []).append(len(statements))

    # A search looks first whether the index lacks a title or a message.
    assert counted == {
        "search": [5, 5],
        "everywhere": [6, 6],
        "thoughts": [3, 3],
        "thoughts of a model": [4, 4],
    }


def test_a_long_conversation_is_indexed_in_several_transactions(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few messages of much text fill a step, so that an append waits for no more than one."""
    adds: list[int] = []
    add = search._add

    def counting(connection: Any, step: Any) -> None:
        adds.append(len(step))
        add(connection, step)

    monkeypatch.setattr(search, "_add", counting)
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("long", create=True)
        long = " ".join(f"word{number}" for number in range(1200))
        session.append([rs.assistant(f"{number} {long}") for number in range(300)])
        found = store.search("299").items

    assert adds == [1, 1, 1]
    assert [hit.position for hit in found] == [300]


def test_a_store_that_is_only_read_finds_what_is_not_in_the_index_yet(url: str) -> None:
    """It reads those texts, and writes nothing."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True, title="mu")
        session.append(rs.user("mu 1"))
        store.search("mu")
        session.append(rs.assistant(rs.ThinkingBlock(thought="mu"), "mu 2"))
        session.rename("nu")
    with rs.Store(url, read_only=True) as store:
        for _ in range(2):
            page = store.search("mu", within="all", limit=2)
            rest = store.search("mu", within="all", limit=2, after=page.next)
            found = [(hit.kind, hit.position) for hit in (*page.items, *rest.items)]
            assert found == [("thinking", 2), ("answer", 2), ("answer", 1)]
            assert places(store.search("nu")) == [("chat", None)]


@each(
    "given, said",
    [
        ({"text": ""}, "text: a query has at least one word"),
        ({"text": " -x ?! \U0001f600"}, "text: a query has at least one word"),
        ({"text": "x " * 600}, "text: a query has at most 1000 characters"),
        ({"text": 7}, "text"),
        ({"text": "x", "within": "thoughts"}, "within: one of answers, thinking, all"),
        ({"text": "x", "branches": "main"}, "branches: one of current, all"),
        ({"text": "x", "limit": 0}, "limit"),
        ({"text": "x", "after": "1.2.3"}, "after: not the .next of a page of hits"),
        ({"text": "x", "after": f"{10**18 * 9}9.1.1.1.1"}, "after: not the .next"),
    ],
)
def test_what_is_no_query_is_refused(store: rs.Store, given: Any, said: str) -> None:
    with pytest.raises(rs.InvalidCall, match=f"^{said}"):
        store.search(**given)


def test_thoughts_are_listed_by_who_thought_them_and_when(store: rs.Store) -> None:
    """On every branch, the latest first; what is encrypted or empty has no text."""
    models = ["claude-x", "gpt-y", "Claude-Z"]
    for n, model in enumerate(models):
        session = store.session(f"chat-{n}", create=True)
        origin = rs.Origin(provider="anthropic" if n != 1 else "openai", model=model)
        thinking = [rs.ThinkingBlock(thought=f"{model} {m}") for m in range(2)]
        session.append(
            [
                rs.user("?"),
                rs.assistant(*thinking, "!", origin=origin),
                rs.assistant(rs.ThinkingBlock(encrypted="x", thought=""), "?", origin=origin),
            ],
            created_at=datetime(2026, 1, 1 + n, tzinfo=UTC),
        )
    session.edit(2, rs.assistant("other"))

    def of(**given: Any) -> list[str | None]:
        return [one.model for one in store.thoughts(**given).items]

    assert of() == models[::-1]
    assert of(model="*claude*") == ["Claude-Z", "claude-x"]
    assert of(provider="OpenAI") == ["gpt-y"]
    assert of(model="gpt") == []
    assert of(since=datetime(2026, 1, 2, tzinfo=UTC)) == ["Claude-Z", "gpt-y"]
    assert of(until=datetime(2026, 1, 2, tzinfo=UTC)) == ["claude-x"]
    (first,) = store.thoughts(model="claude-x").items
    assert (first.text, first.session, first.position) == ("claude-x 0\n\nclaude-x 1", "chat-0", 2)
    page = store.thoughts(limit=2)
    rest = store.thoughts(limit=2, after=page.next)
    assert ([one.model for one in rest.items], rest.next) == (["claude-x"], None)
    with pytest.raises(rs.InvalidCall, match=r"^after: not the \.next of a page of thoughts"):
        store.thoughts(after="1.2")


def test_a_thought_is_found_before_many_that_cannot_be_read(store: rs.Store) -> None:
    """Ciphertext has no text: it fills no page, and ends none."""
    sealed = rs.ThinkingBlock(thought="", encrypted="abc", source_field="thinking")
    session = store.session("chat-42", create=True)
    for thought in ("first", "second"):
        session.append(rs.assistant(rs.ThinkingBlock(thought=thought), "Yes."))
        session.append([rs.assistant(sealed, "No.")] * 40)
    page = store.thoughts(limit=1)
    rest = store.thoughts(limit=1, after=page.next)

    assert [one.text for one in (*page.items, *rest.items)] == ["second", "first"]
    assert rest.next is None


def test_the_asynchronous_face_searches_too(url: str) -> None:
    async def tried() -> tuple[list[tuple[str, int | None]], list[str]]:
        async with rs.AsyncStore(url) as store:
            mine = store.for_owner("me")
            session = await mine.session("chat", create=True)
            await session.append(rs.assistant(rs.ThinkingBlock(thought="deep"), "xi"))
            found, thought = await asyncio.gather(mine.search("xi"), mine.thoughts())
            return places(found), [one.text for one in thought.items]

    assert asyncio.run(tried()) == ([("chat", 1)], ["deep"])


def test_verify_names_an_entry_that_is_stale_or_anothers(store: rs.Store) -> None:
    session = store.session("chat", create=True)
    session.append([rs.user("omicron pi"), rs.user("rho")])
    store.search("pi")
    assert store.verify().problems == ()
    for change in (
        "UPDATE search_entries SET position = 9 WHERE position = 1",
        "UPDATE search_entries SET kind = 2 WHERE position = 2",
    ):
        store._state.ledger.database.write(lambda c, text=change: driver(c).execute(text))  # type: ignore[misc]

    problems = store.verify().problems
    assert {(one.code, one.position) for one in problems if one.code == "search"} == {
        ("search", 9),
        ("search", 2),
    }
