"""The inspector in a real browser: Debian's chromium, on the database that the demo leaves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import reasoning_store as rs
from reasoning_store.server.inspector.questions import CONTROLS
from reasoning_store.testing import stream
from tests.server.serving import serving

pytestmark = pytest.mark.long
expect.set_options(timeout=60_000)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
).split()
DEMO = "/session?id=demo&limit=1000"
FULL = "/session?id=demo&limit=100"
"""The page of a request that does not fit its context window."""
OTHER = f"{DEMO}&includeInContext=false&show=last&unfold=1"
PAGES = ("/", "/?q=prime", DEMO, FULL, OTHER, "/session")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "this test needs Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rs.Store]:
    """The store that the demo leaves."""
    demo = [sys.executable, "-m", "reasoning_store", "demo", "--folder", str(tmp_path)]
    subprocess.run(demo, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    with rs.Store(f"sqlite:///{tmp_path / 'demo.db'}") as store:
        yield store


@pytest.fixture
def open_page(browser: Browser, store: rs.Store) -> Iterator[Open]:
    """Opens pages of the server; at the end none has met an error or broken its policy."""
    errors: list[str] = []
    contexts: list[BrowserContext] = []
    with serving(store) as address:

        def open_(path: str = DEMO, **options: Any) -> Page:
            context = browser.new_context(base_url=address, **options)
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda message: errors.append(message.text))
            page.goto(path)
            return page

        yield open_
        for context in contexts:
            context.close()
    assert [one for one in errors if "404" not in one] == []


def included(store: rs.Store) -> rs.results.Resolved:
    return store.session("demo").settings.resolved()["reasoning.includeInContext"]


def test_a_toggle_shows_its_effect_and_is_saved_by_keyboard_alone(
    open_page: Open, store: rs.Store
) -> None:
    """A message that was unfolded stays so, and the focus stays where it was."""
    page = open_page()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("t")
    expect(page.locator("#m2 details")).to_have_attribute("open", "")

    page.keyboard.press("i")

    expect(page.locator("main .change")).to_contain_text("messages 2, 4, 8 and 10 is left out")
    expect(page.locator("#m2 .badge").first).to_have_text("left out")
    expect(page.locator(".number strong")).to_have_text("~149/1000")
    expect(page.locator("#m2 details")).to_have_attribute("open", "")
    expect(page.locator("#m2")).to_be_focused()
    assert included(store).value is True

    page.keyboard.press("c")
    while page.evaluate("document.activeElement.textContent.trim()") != "Save for this session":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("main .change")).to_have_count(0)
    assert included(store).value is False


def test_each_control_changes_the_page_and_nothing_else(open_page: Open, store: rs.Store) -> None:
    """The settings that are saved stay until they are saved."""
    saved = store.session("demo").settings.resolved()
    for control in CONTROLS:
        page = open_page()
        page.locator("details.more").first.evaluate("each => { each.open = true }")
        before = page.locator("#view").get_attribute("data-live")
        if control.kind == "switch":
            page.locator(f"#c-{control.name}").click()
        elif control.name == "stripFromContext":
            page.locator("#c-stripFromContext-allButLast").click()
        elif control.kind == "choice":
            page.locator(f"#c-{control.name}").select_option(control.choices[-1][0])
        else:
            page.locator(f"#c-{control.name}").fill("500")
            page.keyboard.press("Tab")
        expect(page.locator("main .change")).to_contain_text("not saved")
        assert page.locator("#view").get_attribute("data-live") != before
        page.get_by_role("link", name="Difference to the saved settings").click()
        expect(page.locator("pre.request")).not_to_be_empty()
    assert store.session("demo").settings.resolved() == saved


def test_another_model_and_limit_are_named_in_the_panel(open_page: Open) -> None:
    """The verdicts are those of the model that is named."""
    page = open_page()
    page.get_by_text("Model and limit").click()
    page.get_by_role("textbox", name="Provider").fill("anthropic")
    page.get_by_label("Model", exact=True).fill("claude-sonnet-4-5")
    page.get_by_label("context window").fill("500")
    page.keyboard.press("Enter")

    expect(page.locator(".number")).to_contain_text("/500 tokens")
    expect(page.locator("#m6 .badge").first).to_have_text("sent")
    expect(page.locator("#m8 .badge").first).to_have_text("left out")


def test_all_of_it_works_without_javascript(open_page: Open, store: rs.Store) -> None:
    """Forms and links do what scripts make quicker."""
    page = open_page("/", java_script_enabled=False)
    page.get_by_role("link", name="The demo").click()
    page.locator("#c-includeInContext").uncheck()
    page.get_by_role("button", name="Show what would be sent").click()
    expect(page.locator("main .change")).to_contain_text("is left out")
    page.get_by_role("link", name="Unfold all thinking").click()
    expect(page.locator("details.thought[open]")).to_have_count(5)
    page.get_by_role("link", name="curl").click()
    expect(page.locator("pre.request")).to_contain_text("curl")
    page.get_by_role("button", name="Save for this session").click()

    expect(page.locator(".number strong")).to_have_text(re.compile("^~149"))
    assert included(store).layer == "session"
    page.get_by_role("button", name="Unset includeInContext").click()
    expect(page.locator(".saved")).to_have_count(0)
    assert included(store).layer == "default"


@pytest.mark.parametrize("has_scripts", [True, False])
def test_a_summary_is_written_applied_and_undone_by_keyboard(
    open_page: Open, store: rs.Store, has_scripts: bool
) -> None:
    """The effect is on the page before the button is pressed."""
    page = open_page(FULL, java_script_enabled=has_scripts)
    expect(page.locator("#shorter + .number")).to_contain_text(re.compile("^~253 \\S ~\\d+ tokens"))
    page.get_by_label("Summary of").focus()
    page.keyboard.type("91 is 7 times 13; the next prime is 97.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("main .summary-sent")).to_contain_text("the next prime is 97")
    expect(page.locator("#m1 .instead")).to_be_visible()
    assert store.session("demo").usage().effective < 100

    page.get_by_role("button", name="Undo summary 1").press("Enter")
    expect(page.locator("main .summary-sent")).to_have_count(0)
    assert store.session("demo").usage().effective == 253


def test_a_file_has_nothing_to_run_or_load(open_page: Open, tmp_path: Path) -> None:
    """Its links and folds work, in any browser's strictest policy."""
    page = open_page("/")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path / 'demo.html'}")
    page.locator("#m8 summary").click()
    expect(page.locator("#m8 details .rule")).to_contain_text("Rule: kept")
    page.get_by_role("link", name="The next request").click()
    expect(page.locator("#next .number strong").first).to_have_text("~253/1000")
    page.locator("#next summary").filter(has_text="curl").click()
    expect(page.locator("pre.request").nth(1)).to_contain_text("curl")
    assert {url.partition("#")[0] for url in asked} == {f"file://{tmp_path / 'demo.html'}"}


def test_shortcuts_can_be_switched_off(open_page: Open) -> None:
    """The help names them, and a letter in a field is a letter."""
    page = open_page()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.get_by_label("Single keys are shortcuts").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("T")
    expect(page.locator("details.thought[open]")).to_have_count(0)

    page.goto("/")
    page.get_by_label("Search", exact=True).fill("prime")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_have_text("prime", ignore_case=True)


def test_a_reply_grows_on_the_page_while_it_arrives(open_page: Open, store: rs.Store) -> None:
    """Its thinking first; then the page has the message, with its verdict."""
    session = store.session("demo")
    thought = rs.ThinkingBlock(thought="One hundred and one.", source_field="reasoning_content")
    to: dict[str, Any] = {"provider": "moonshot", "model": "kimi-k2-thinking"}
    events = list(stream(rs.assistant(thought, "101."), api="openai.chat", pieces=4, **to))
    seen = threading.Event()

    def arriving() -> Iterator[Any]:
        yield from events[:4]
        assert seen.wait(120)
        yield from events[4:]

    def record() -> None:
        with session.record(arriving(), request=session.build_request(**to)) as reply:
            list(reply)

    page = open_page()
    recorder = threading.Thread(target=record)
    recorder.start()
    try:
        expect(page.locator("[data-streaming] .thought")).to_contain_text("One hun")
    finally:
        seen.set()
        recorder.join()

    expect(page.locator("#m12 > .parts > .text")).to_have_text("101.")
    expect(page.locator("#m12 .badge").first).to_have_text("sent")
    expect(page.locator("[data-streaming]")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_each_page_is_accessible_and_fits(
    open_page: Open, tmp_path: Path, scheme: str, width: int
) -> None:
    """WCAG 2.2 AA by axe's rules, and nothing to scroll sideways."""
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    for path in (*PAGES, f"file://{tmp_path / 'demo.html'}"):
        page = open_page(
            path,
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            bypass_csp=True,
        )
        page.evaluate(axe)
        found = page.evaluate(f"axe.run({{ runOnly: {json.dumps(RULES)} }})")
        assert [(one["id"], one["nodes"][0]["target"]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
