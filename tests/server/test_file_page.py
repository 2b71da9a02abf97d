"""The page of a session as a file: the same facts as in the inspector, and nothing to load."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given

import reasoning_store as rs
from reasoning_store.server.inspector.file_page import file_page
from tests.properties import examples
from tests.server.conftest import record_turns
from tests.strategies import texts

OFF: dict[str, Any] = {"reasoning.includeInContext": False}


@pytest.fixture
def session(store: rs.Store, request: pytest.FixtureRequest) -> rs.Session:
    return record_turns(store, request.node.name)


class Reader(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page_of(session: rs.Session, **options: Any) -> str:
    return file_page(session, session.history(), **options)


def test_the_page_shows_what_the_verbs_return(session: rs.Session) -> None:
    """The verdict of each thought, the tokens, each choice, and the request."""
    session.settings.set("reasoning.stripFromContext", "allButLast")
    page = page_of(session, limit=1000)
    request, text = session.build_request(), "".join(Reader(page).texts)

    assert re.findall(r'badge (?:sent|out)">([a-z ]+)<', page) == [
        "sent" if one.kept else "left out" for one in request.verdicts
    ]
    assert all(one.reason in text and one.rule in text for one in request.verdicts)
    assert f"{request.tokens.effective}/1000 tokens" in text
    for row in session.what_if().rows:
        assert re.search(rf"<td[^>]*>~{row.tokens.effective}\b", page)
    assert '"content": "And now?"' in text
    assert "curl" in text
    assert "+++ next" in text


def test_the_page_loads_nothing_and_runs_nothing(session: rs.Session) -> None:
    """Each address in it is a place in it; there is no script, form, frame or picture."""
    read = Reader(page_of(session, limit=1000))

    places = {value for name, value in read.attributes if name in ("href", "src", "action")}
    assert all(place.startswith("#") for place in places)
    assert read.tags & {"script", "form", "input", "button", "iframe", "img", "link"} == set()
    assert not any(name.startswith("on") or name == "style" for name, _ in read.attributes)
    (policy,) = (value for name, value in read.attributes if value.startswith("default-src"))
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[\w+/]+='", policy)


@examples(100)
@given(value=texts(min_size=1, max_size=40))
def test_whatever_is_stored_is_text(store: rs.Store, value: str) -> None:
    """Of a title, a thought, an answer, a name of a tool, its arguments and its result."""
    hostile = f"</style><script>{value}</script><b onclick=x>\"'&amp;"
    session = store.session("hostile", create=True, title="</title><b>")
    session.append(
        [
            rs.user(hostile),
            rs.assistant(
                rs.ThinkingBlock(thought=hostile, source_field="reasoning_content"),
                hostile,
                rs.ToolCallBlock(id="1", name=hostile, arguments=hostile),
            ),
            rs.tool(rs.ToolResponseBlock(call_id="1", result=hostile)),
        ]
    )
    page = page_of(session)
    session.delete()
    read = Reader(page)

    assert read.tags & {"script", "b"} == set()
    assert read.texts.count(hostile) >= 4
    assert page.count("</style>") == 1


@pytest.mark.parametrize(
    "options", [{"thinking": "none"}, {"thinking": "short"}, {"is_whole": False}], ids=str
)
def test_a_page_of_a_part_has_nothing_of_the_rest(
    session: rs.Session, options: dict[str, Any]
) -> None:
    """The next request, which holds all of it, is not on it."""
    session.settings.set("reasoning.includeInContext", True)
    items = session.history(limit=1) if "is_whole" in options else session.history()
    page = file_page(session, items, **options)

    assert "And now?" in page
    assert "The request itself" not in page
    assert ("Divide by seven." in page) == (options == {"thinking": "short"})


def test_an_erased_thought_is_on_no_page(session: rs.Session) -> None:
    assert "Divide by seven." in page_of(session)

    session.erase(only="reasoning")

    assert "Divide by seven." not in page_of(session)


def test_an_empty_session_has_a_page(store: rs.Store) -> None:
    """With the parameters that its first request would have."""
    page = page_of(store.session("bare", create=True))

    assert "There are no messages yet." in page
    assert "The request itself" in page
