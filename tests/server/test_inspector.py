"""The pages of the inspector: what a person sees is what the store's verbs return."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import html
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from starlette.testclient import TestClient

import reasoning_store as rs
from reasoning_store.server import inspector
from reasoning_store.server.app import make_app
from reasoning_store.server.inspector.curl_command import curl_command
from reasoning_store.server.inspector.live_events import live_events
from reasoning_store.server.inspector.questions import CONTROLS, read_question, word_of
from reasoning_store.server.inspector.session_list import session_address
from reasoning_store.server.inspector.sub_agents import fold_sub_agents
from reasoning_store.server.inspector.texts import result_text
from reasoning_store.server.options import ServerOptions, read_tokens
from reasoning_store.testing import stream
from tests.server.conftest import DEEPSEEK, record_turns

FOLDER = Path(inspector.__file__).parent
PAGE = "/session?id=chat"
KEEP = f"{PAGE}&includeInContext=true"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}") as store:
        yield store


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return record_turns(store, "chat")


@pytest.fixture
def browser(store: rs.Store, session: rs.Session) -> TestClient:
    return TestClient(make_app(store), base_url="http://localhost")


def text_of(page: str) -> str:
    """Return the text of a page, each run of white space as one space."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def marks(page: str) -> list[str]:
    """Return the verdicts that a page shows, in their order."""
    return re.findall(r'badge (?:sent|out)">([a-z ]+)<', page)


def form(page: str, action: str) -> dict[str, str]:
    """Return the fields of the first form that posts to an action."""
    found = re.search(rf'<form method="post" action="{action}">(.*?)</form>', page, re.DOTALL)
    assert found is not None
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', found[1])
    return {name: html.unescape(value) for name, value in fields}


# Sessions


def test_the_list_has_each_session_and_a_search_finds_thinking(browser: TestClient) -> None:
    """With the place where it was found."""
    assert 'href="/session?id=chat">Numbers</a>' in browser.get("/").text

    found = text_of(browser.get("/?q=seven").text)

    assert "message 2, thinking" in found
    assert "Divide by seven ." in found
    assert "No text has these words" in browser.get("/?q=seven&within=answers").text


def test_the_list_goes_on_at_its_next_page(store: rs.Store, browser: TestClient) -> None:
    """Fifty sessions are one page."""
    for number in range(51):
        store.session(f"s{number}", create=True)
    first = browser.get("/").text
    following = re.search(r'href="(/\?after=[^"]+)"', first)
    assert following is not None

    rest = browser.get(html.unescape(following[1])).text

    assert len(set(re.findall(r"/session\?id=[\w%-]+", first + rest))) == 52


def test_sub_agents_are_folded_under_their_chat() -> None:
    """Each session once, also where two name each other, or where metadata is of another kind."""
    facts: dict[str, dict[str, Any]] = {
        "chat": {"group": "a"},
        "child": {"group": "b", "parent": "a"},
        "grandchild": {"group": "c", "parent": "b"},
        "orphan": {"group": "d", "parent": "gone"},
        "one": {"group": "e", "parent": "f"},
        "other": {"group": "f", "parent": "e"},
        "own": {"group": ["a"], "parent": {}},
        "bare": {},
    }
    with rs.Store("sqlite://") as store:
        for id, metadata in facts.items():
            store.session(id, create=True, metadata=metadata)
        folded = [[one.id for one in each] for each in fold_sub_agents(store.sessions().items)]

    assert sorted(folded) == [
        *(["bare"], ["chat", "grandchild", "child"], ["one"], ["orphan"], ["other"], ["own"]),
    ]


def test_the_list_folds_the_sub_agents_of_a_chat(store: rs.Store, browser: TestClient) -> None:
    """They stand under the chat that started them."""
    store.session("agent", create=True, metadata={"group": "g", "client": "opencode"})
    store.session("tester", create=True, metadata={"parent": "g"})

    page = text_of(browser.get("/").text)

    assert re.search("agent opencode, .* Sub-agents: 1 tester .* chat", page)


# A conversation


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("strip", ["none", "allButLast", "all", "priorTurns"])
def test_each_thought_has_the_verdict_of_the_request(
    browser: TestClient, session: rs.Session, include: bool, strip: str
) -> None:
    """With its reason, for whatever settings the address names."""
    address = f"{PAGE}&includeInContext={word_of(include)}&stripFromContext={strip}"
    page = browser.get(address).text
    request = session.build_request(
        settings={"reasoning.includeInContext": include, "reasoning.stripFromContext": strip}
    )

    assert marks(page) == ["sent" if one.kept else "left out" for one in request.verdicts]
    assert all(one.reason in page for one in request.verdicts)
    assert f"<strong>~{request.tokens}</strong> tokens" in page
    assert session.settings.resolved()["reasoning.includeInContext"].layer == "default"


def test_a_page_shows_the_changes_before_they_are_saved(
    browser: TestClient, session: rs.Session
) -> None:
    """In words at the toggle, and again where it is turned."""
    before, after = (
        session.what_if().rows[0],
        session.build_request(settings={"reasoning.includeInContext": True}),
    )
    gain = after.tokens.effective - before.tokens.effective
    words = f"messages 2 and 4 is sent, too; ~{after.tokens} tokens (+{gain})"

    assert f"Turned on: the thinking of {words}" in text_of(browser.get(PAGE).text)
    assert f"not saved. The thinking of {words}" in text_of(browser.get(KEEP).text)


def test_the_line_of_the_prompt_cache_is_where_the_next_request_differs(
    browser: TestClient, session: rs.Session
) -> None:
    """Before the first new message, or before a thought that the last one had not."""
    last = session.context().last_request()
    assert last is not None
    for address, settings in ((PAGE, {}), (KEEP, {"reasoning.includeInContext": True})):
        line = re.search(r'id="cache".*?id="m(\d+)"', browser.get(address).text, re.DOTALL)
        assert line is not None
        request = session.build_request(settings=settings)
        assert int(line[1]) == request.first_difference(last)


def test_versions_and_branches_lead_to_each_other(browser: TestClient, session: rs.Session) -> None:
    """The page of another branch offers to make it the current one."""
    session.edit(5, rs.user("And then?"))
    page = browser.get(PAGE).text
    other = re.search(r'href="([^"]+branch=1)#m5"', page)
    assert "And then?" in page
    assert other is not None

    earlier = browser.get(html.unescape(other[1])).text
    assert "And now?" in earlier
    browser.post("/session/branch", data=form(earlier, "/session/branch"))

    assert "And now?" in browser.get(PAGE).text


def test_a_summary_is_shown_where_it_is_sent(browser: TestClient, session: rs.Session) -> None:
    """The messages that it replaces stay, and say so."""
    plan = session.compression(limit=30, threshold=0.1, settings={"reasoning.floor": "off"})
    session.compact(plan, summary="They divided.")

    page = text_of(browser.get(PAGE).text)

    assert "Summary 1 sent instead of messages 1 to" in page
    assert "They divided." in page
    assert "Summary 1 is sent instead of this message. Question 1?" in page


def test_a_long_conversation_is_read_page_by_page(browser: TestClient, session: rs.Session) -> None:
    """The latest hundred messages first."""
    session.append([rs.user(f"Line {number}.") for number in range(150)])
    page = browser.get(PAGE).text
    earlier = re.search(r'href="([^"]+before=\d+)"', page)
    assert earlier is not None

    assert "Line 149." in page
    assert 'id="m1"' not in page
    assert 'id="m1"' in browser.get(html.unescape(earlier[1])).text


# The next request


def test_each_view_of_the_request_is_the_request(browser: TestClient, session: rs.Session) -> None:
    """JSON, curl and both differences, and the whole body as a file."""
    session.settings.set("reasoning.includeInContext", True)
    request, last = session.build_request(), session.context().last_request()
    saved = request
    request = session.build_request(settings={"reasoning.includeInContext": False})
    assert last is not None
    off = f"{PAGE}&includeInContext=false"

    def shown(view: str) -> str:
        page = browser.get(f"{off}&show={view}").text
        found = re.search(r'<pre class="request"[^>]*>(.*?)</pre>', page, re.DOTALL)
        assert found is not None
        return html.unescape(re.sub(r"<[^>]+>", "", found[1])).rstrip("\n")

    assert json.loads(shown("json")) == request.body
    assert shown("curl") == curl_command(request)
    assert shown("last") == "\n".join(request.diff(last, ("last sent", "next")))
    assert shown("saved") == "\n".join(request.diff(saved, ("saved settings", "these settings")))
    assert browser.get("/session/request.json?id=chat&includeInContext=false").json() == (
        request.body
    )


@pytest.mark.parametrize(
    ("to", "begins"),
    [
        ({}, 'curl "$BASE_URL/chat/completions"'),
        ({"base_url": "https://api.anthropic.com"}, "https://api.anthropic.com/v1/messages"),
        ({"base_url": "https://h/v1/$(id)", "provider": "openai"}, "'https://h/v1/$(id)/chat/"),
        ({"provider": "gemini", "model": "gemini-2.5"}, "/models/gemini-2.5:generateContent"),
    ],
)
def test_a_command_of_curl_has_the_address_and_no_key(to: dict[str, Any], begins: str) -> None:
    """An address that holds a shell's characters is quoted; the key is a variable."""
    command = curl_command(rs.build_request([rs.user("Hi")], **{"model": "m", **to}))

    assert command is not None
    assert begins in command
    assert 'API_KEY="..."' in command


def test_the_matrix_has_each_choice_and_leads_to_it(
    browser: TestClient, session: rs.Session
) -> None:
    """A link gives the page of its number."""
    page = browser.get(PAGE).text
    cells = re.findall(r'<td[^>]*><a href="([^"]+)"[^>]*>~(\d+)</a>', page)
    rows = session.what_if().rows

    assert sorted(int(tokens) for _, tokens in cells) == sorted(
        row.tokens.effective for row in rows
    )
    for address, tokens in cells[:2]:
        assert f"<strong>~{tokens}</strong> tokens" in browser.get(html.unescape(address)).text


def test_the_parts_of_the_bar_add_up(browser: TestClient, session: rs.Session) -> None:
    """To the number in front of the limit."""
    page = browser.get(f"{KEEP}&limit=1000").text
    table = re.search(r'<table class="kinds">(.*?)</table>', page, re.DOTALL)
    assert table is not None
    *parts, withheld, room = map(int, re.findall(r"<td>(\d+)</td>", table[1]))

    assert f"<strong>~{sum(parts)}/1000</strong>" in page
    assert (withheld, room) == (0, 1000 - sum(parts))


def test_a_model_that_is_named_decides(browser: TestClient) -> None:
    """What it has no place for is left out."""
    page = browser.get(f"{KEEP}&provider=anthropic&model=claude-sonnet-4-5").text

    assert marks(page) == ["left out", "left out"]
    assert "claude-sonnet-4-5 of anthropic" in page


# Settings


def test_settings_are_saved_and_unset_by_forms(browser: TestClient, session: rs.Session) -> None:
    """Only those that the page has changed."""
    saved = browser.post(
        "/session/settings", data=form(browser.get(KEEP).text, "/session/settings")
    )
    layers = {key for key, one in session.settings.resolved().items() if one.layer == "session"}
    assert layers == {"reasoning.includeInContext"}
    assert "of this session" in saved.text

    browser.post("/session/settings", data=form(saved.text, "/session/settings"))
    assert session.settings.resolved()["reasoning.includeInContext"].layer == "default"


# A plan


def search_pages(store: rs.Store) -> rs.Session:
    """Return a session with two closed turns of a tool, and a question."""
    session = store.session("tools", create=True)
    for number in range(2):
        call = rs.ToolCallBlock(id=f"call_{number}", name="search", parameters={"page": number})
        found = rs.ToolResponseBlock(call_id=call.id, tool_name="search", result="found " * 300)
        thought = rs.ThinkingBlock(thought="Look. " * 40, source_field="reasoning_content")
        session.append([rs.user("Search."), rs.assistant(thought, call), rs.tool(found)])
        session.append(rs.assistant("Nothing."))
    session.append(rs.user("And so on."))
    return session


def test_a_plan_says_its_effect_is_applied_and_is_undone(
    browser: TestClient, store: rs.Store
) -> None:
    """The numbers are those of the store; each step is named with the tokens that it frees."""
    session = search_pages(store)
    session.settings.set("reasoning.includeInContext", True)
    address = "/session?id=tools&limit=600"
    plan = session.compression(limit=600)
    assert [step.kind for step in plan.steps] == ["strip", "clear"]
    before = session.usage().effective

    page = browser.get(address).text
    assert f"~{before} \N{RIGHTWARDS ARROW} ~{plan.after} tokens" in text_of(page)
    assert [int(n) for n in re.findall(r"<td>&minus;(\d+)</td>", page)] == [
        step.tokens for step in plan.steps
    ]
    made = browser.post("/session/compact", data=form(page, "/session/compact")).text

    assert f"<strong>~{plan.after}/600</strong>" in made
    assert session.usage().effective == plan.after
    undone = browser.post("/session/undo", data=form(made, "/session/undo")).text
    assert f"<strong>~{before}/600</strong>" in undone
    assert session.usage().effective == before


def test_a_summary_is_written_by_the_reader(browser: TestClient, store: rs.Store) -> None:
    """Of the messages that the plan names; an empty one is refused."""
    session = search_pages(store)
    session.append(rs.user("One more. " * 100))
    page = browser.get("/session?id=tools&limit=400").text
    fields = form(page, "/session/compact")
    assert "Summary of messages 1 to 9" in text_of(page)

    empty = browser.post("/session/compact", data={**fields, "summary": " \r\n"})
    assert (empty.status_code, session.compactions()) == (400, [])
    made = browser.post("/session/compact", data={**fields, "summary": "No page\r\nhas it."})

    assert session.compactions()[0].summary == "No page\nhas it."
    assert "Summary 1 is sent instead of messages 1 to 9" in text_of(made.text)


def test_a_plan_that_has_changed_is_refused_and_the_summary_is_shown(
    browser: TestClient, store: rs.Store
) -> None:
    """A person reads the effect first, and no text that a person wrote is lost."""
    session = search_pages(store)
    session.append(rs.user("One more. " * 100))
    fields = form(browser.get("/session?id=tools&limit=400").text, "/session/compact")
    session.compact(session.compression(limit=400), summary="Another one.")

    refused = browser.post("/session/compact", data={**fields, "summary": "My <own> words."})

    assert refused.status_code == 409
    assert "My &lt;own&gt; words." in refused.text
    assert "Nothing was changed" in refused.text
    assert [one.summary for one in session.compactions()] == ["Another one."]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("", "The model's context window, in tokens"),
        ("&limit=100000", "below the size at which a plan acts"),
        ("&limit=100&reserve=100", "a reserve of 100 uses up the limit"),
        ("&limit=100&threshold=400", "threshold"),
    ],
)
def test_a_page_without_a_plan_names_the_reason(browser: TestClient, asked: str, says: str) -> None:
    """And shows the conversation and its request as before."""
    page = text_of(browser.get(f"{PAGE}{asked}").text)

    assert says in page
    assert "Question 1?" in page
    assert "The request itself" in page


@pytest.mark.parametrize("action", ["settings", "compact", "undo", "branch"])
def test_each_form_needs_its_token(browser: TestClient, action: str) -> None:
    browser.get(PAGE)

    assert browser.post(f"/session/{action}", data={"id": "chat"}).status_code == 403


@pytest.mark.parametrize("token", ["", "another"])
def test_a_form_without_its_token_changes_nothing(
    browser: TestClient, session: rs.Session, token: str
) -> None:
    """A page of another site knows no token."""
    fields = {**form(browser.get(KEEP).text, "/session/settings"), "form_token": token}

    refused = browser.post("/session/settings", data=fields)

    assert refused.status_code == 403
    assert session.settings.resolved()["reasoning.includeInContext"].layer == "default"


def test_each_setting_has_a_control_with_all_its_values() -> None:
    """A new setting or value is missed here."""
    fields = rs.ReasoningSettings.model_fields
    values = {name: get_args(field.annotation) for name, field in fields.items()}
    shown = {control.key: {value for value, _ in control.choices} for control in CONTROLS}

    assert len(CONTROLS) == len(fields)
    for name, field in fields.items():
        words = {
            word_of(value)
            for part in values[name] or (True, False)
            for value in (get_args(part) or [part])
            if part is not type(None)
        }
        if name != "budget_tokens":
            assert shown[str(field.alias)] - {"unset"} == words, name


# Live replies


def test_a_live_reply_is_followed_to_its_end(session: rs.Session) -> None:
    """Its pieces as they arrive, then a word that the conversation has changed."""
    thought = rs.ThinkingBlock(thought="Let me see.", source_field="reasoning_content")
    events = list(stream(rs.assistant(thought, "Done."), api="openai.chat", **DEEPSEEK))
    read = threading.Event()

    def arriving() -> Iterator[Any]:
        yield from events[:-1]
        assert read.wait(60)
        yield events[-1]

    def record() -> None:
        with session.record(arriving(), **DEEPSEEK) as reply:
            list(reply)

    async def follow() -> list[str]:
        found = []
        async for event in live_events(session, session.head()):
            found.append(event)
            if "Done" in "".join(found):
                read.set()
        return found

    recorder = threading.Thread(target=record)
    recorder.start()
    found = asyncio.run(follow())
    recorder.join()

    pieces = [json.loads(data) for data in re.findall(r"event: piece\ndata: (.*)", "".join(found))]
    of_kind = {
        kind: "".join(p["text"] for p in pieces if p["kind"] == kind)
        for kind in ("thought", "text")
    }
    assert of_kind == {"thought": "Let me see.", "text": "Done."}
    assert found[-1].startswith("event: changed")


# Safety


def test_a_text_is_never_markup(browser: TestClient, session: rs.Session) -> None:
    """In a message, a thought, a title, an id or a search."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    session.rename(evil)
    thought = rs.ThinkingBlock(thought=evil, source_field="reasoning_content")
    session.append(rs.assistant(thought, evil))

    for address in (PAGE, "/", f"/?q={evil}", f"/session?id={evil}", f"{PAGE}&model={evil}"):
        page = browser.get(address).text
        assert "<script>alert" not in page
        assert "<img" not in page


def test_no_page_needs_inline_code(browser: TestClient) -> None:
    """The policy allows this server's files alone, and each page keeps to it."""
    for address in ("/", PAGE, "/session?id=unknown"):
        answer = browser.get(address)
        assert "script-src 'self'; style-src 'self'" in answer.headers["content-security-policy"]
        # With "no-referrer" a browser names no origin in a form, and the form is refused.
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not re.search(r"<script(?![^>]+src=)|<style|\sstyle=|\son\w+=", answer.text)
        for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', answer.text):
            assert browser.get(file).status_code == 200


def test_no_page_shows_another_owner_or_a_token(store: rs.Store, session: rs.Session) -> None:
    """Each token opens the sessions of its owner alone."""
    canary, token = "canary-of-you", "token-of-me-0123456789"
    theirs = store.for_owner("you").session("chat", create=True, title=canary)
    theirs.append(rs.user(canary))
    store.for_owner("me").session("mine", create=True).append(rs.user("Hello"))
    tokens = read_tokens([f"{token} me", "token-of-you-0123456789 you"], "tokens")
    app = make_app(store, ServerOptions(tokens=tokens))
    browser = TestClient(app, base_url="http://localhost")
    assert browser.get("/", headers={"Accept": "text/html"}).status_code == 401
    browser.post("/sign-in", data={"token": token})

    for address in ("/", f"/?q={canary}", PAGE, "/session?id=mine", "/session/live?id=chat"):
        answer = browser.get(address)
        seen = answer.text + str(answer.headers)
        assert (canary not in seen) or address.startswith("/?q=")
        assert "token-of-" not in seen
    assert "mine" in browser.get("/").text
    assert "No text has these words" in browser.get(f"/?q={canary}").text


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/session?id=unknown", 404, "unknown"),
        ("/session", 404, "cannot be shown"),
        (f"{PAGE}&branch=9", 404, "9"),
        (f"{PAGE}&branch=x", 400, "branch: not a whole number"),
        (f"{PAGE}&stripFromContext=some", 400, "one of: all, allButLast, none, priorTurns"),
        (f"{PAGE}&show=xml", 400, "json, curl, last, saved"),
        ("/?within=titles&q=x", 400, "answers, thinking"),
        ("/?after=x", 400, "after"),
        (f"{PAGE}&api=interactions", 200, "There is no next request"),
        ("/static/endpoints.py", 404, ""),
    ],
)
def test_a_bad_address_is_explained(
    browser: TestClient, address: str, status: int, says: str
) -> None:
    """A model without a request leaves the conversation readable."""
    answer = browser.get(address)

    assert answer.status_code == status
    assert says in html.unescape(answer.text)
    assert ("Question 1?" in answer.text) == (status == 200)


@pytest.mark.parametrize("id", ["a/b", "a?b=c&d#e", "caf\N{LATIN SMALL LETTER E WITH ACUTE} %41"])
def test_any_id_has_a_page(store: rs.Store, browser: TestClient, id: str) -> None:
    """The list leads to it, and so does the command line's address."""
    store.session(id, create=True).append(rs.user("Hello of this one"))
    links = re.findall(r'href="(/session\?id=[^"]+)"', browser.get("/").text)

    assert "Hello of this one" in browser.get(html.unescape(links[0])).text
    assert "Hello of this one" in browser.get(session_address(id)).text


# The house


@pytest.mark.parametrize("is_error", [False, True])
def test_an_image_in_a_result_is_shown_by_its_type(is_error: bool) -> None:
    """Its bytes are no text for a reader."""
    shot = [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]
    response = rs.ToolResponseBlock(call_id="call_1", result=shot, is_error=is_error)

    assert result_text(response) == "(image: image/png)"


def test_the_pages_use_public_names_alone() -> None:
    """What they lack is a public verb that is missing."""
    names = {
        f"{node.module}.{alias.name}"
        for path in FOLDER.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reasoning_store")
        for alias in node.names
    }
    ours = {name for name in names if not name.startswith("reasoning_store.server.")}

    public = {f"reasoning_store.{name}" for name in (*rs.__all__, "__version__")}
    results = {f"reasoning_store.results.{name}" for name in rs.results.__all__}
    assert ours <= public | results


def test_what_is_vendored_is_what_was_published() -> None:
    """By its checksum, with its licence."""
    vendor = json.loads((FOLDER / "static" / "vendor.json").read_text("utf-8"))

    for name, facts in vendor.items():
        data = (FOLDER / "static" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == facts["sha256"]
    assert "Zero-Clause BSD" in (FOLDER / "static" / "htmx.LICENSE").read_text("utf-8")


def test_an_address_is_read_back_as_it_was_written() -> None:
    """A link of the page asks for what it shows."""
    asked = "id=a%26b&branch=2&includeInContext=true&effort=unset&budgetTokens=5&model=m&limit=9"
    pairs = [tuple(part.split("=")) for part in asked.replace("%26", "&").split("&")]
    question = read_question([(name, value) for name, value in [("id", "a&b"), *pairs[2:]]])

    assert question.address() == f"/session?{asked}"
