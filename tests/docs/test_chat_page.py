"""The chat product of the examples, driven in a real browser: Debian's chromium."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

import reasoning_store as rs
from tests import programs

pytestmark = pytest.mark.long
expect.set_options(timeout=8_000)
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "chat_app"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
).split()


COUNT_LENGTHS = """() => {
  window.lengths = new Set()
  new MutationObserver(() => {
    const text = document.querySelector(".text")
    if (text) lengths.add(text.textContent.length)
  }).observe(document.querySelector("#messages"), { childList: true, subtree: true })
}"""


@contextmanager
def worker(folder: Path, *, pause: float) -> Iterator[str]:
    """Run a worker process of the example, whose model waits so long between two pieces."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        running = programs.start(
            [
                *(sys.executable, "-m", "uvicorn", "chat:app", "--log-level", "error"),
                *("--fd", str(listener.fileno())),
            ],
            cwd=EXAMPLE,
            env={
                "HOME": str(folder),
                "CHAT_APP_PAUSE": str(pause),
                "CONTEXT_LIMIT": "1200",
                "MODELS": "deepseek/deepseek-flash moonshot/kimi-k3 deepseek/deepseek-v4",
                "REASONING_STORE_URL": f"sqlite:///{folder / 'chat.db'}",
            },
            pass_fds=[listener.fileno()],
        )
    try:
        yield address
    finally:
        running.terminate()
        running.wait(120)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path is not None, "this test needs Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page of a new user, at whose end no error of its program has come."""
    with worker(tmp_path, pause=0.02) as address:
        errors: list[str] = []
        page = browser.new_page(base_url=address)
        page.set_default_timeout(8_000)
        page.on("dialog", lambda dialog: dialog.accept("Greetings"))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto("/")
        yield page
        page.close()
        assert errors == []


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def reply(page: Page) -> Locator:
    """The last reply that is shown."""
    return page.locator("article.assistant").last


def wait_for_end(page: Page) -> None:
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible(timeout=8_000)


def ask(page: Page, text: str) -> None:
    say(page, text)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    wait_for_end(page)


def test_a_reply_grows_word_by_word_and_its_thinking_is_folded(page: Page) -> None:
    """What the model thinks is there, and is shown when it is asked for."""
    page.evaluate(COUNT_LENGTHS)
    say(page, "Tell me a story")
    thought = page.get_by_text("A lighthouse would do")
    reply(page).locator(".text").get_by_text("winter").first.wait_for()

    assert page.evaluate("lengths.size") > 3
    expect(thought).to_be_hidden()
    page.get_by_text("Thought", exact=True).click()
    expect(thought).to_be_visible()


def test_a_tool_is_shown_with_its_result(page: Page) -> None:
    """Thought, call, thought and answer are one reply."""
    ask(page, "How is the weather in Oslo?")

    expect(page.locator("article.assistant")).to_have_count(1)
    expect(reply(page)).to_contain_text("It is 4 C, light rain right now.")
    page.get_by_text("Used get_weather").click()
    expect(reply(page).locator("details[open]")).to_contain_text('"city": "Oslo"')


def test_stop_keeps_what_had_arrived(page: Page, tmp_path: Path) -> None:
    """The reply ends, and says that it was stopped; so does the store."""
    say(page, "Tell me a story")
    reply(page).locator(".text").get_by_text("first").wait_for()
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)

    expect(reply(page).get_by_text("Stopped")).to_be_visible()
    shown = reply(page).locator(".text").inner_text()
    with rs.Store(f"sqlite:///{tmp_path / 'chat.db'}", read_only=True) as store:
        session = store.for_owner("you").sessions().items[0]
        kept = session.history()[-1].message
    assert kept.status == "interrupted"
    assert "first" in shown
    assert kept.text.replace("*", "").startswith(shown[:20])


def test_an_edit_makes_a_version_and_the_arrows_lead_back(page: Page) -> None:
    """The first question and its answer are still there."""
    ask(page, "Is 91 a prime number?")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Edit message").fill("How is the weather in Bergen?")
    page.locator("form.edit").get_by_role("button", name="Send").click()
    expect(reply(page)).to_contain_text("light rain")
    wait_for_end(page)

    expect(page.locator(".version")).to_have_text("2/2")
    page.get_by_role("button", name="Previous version").click()
    expect(page.locator(".version")).to_have_text("1/2")
    expect(page.locator("article.user")).to_contain_text("Is 91 a prime number?")
    expect(reply(page)).to_contain_text("91 is not a prime number")


def test_a_regenerated_reply_is_shown_next_to_the_first(page: Page) -> None:
    """Twice: the arrows go through all three."""
    ask(page, "Is 91 a prime number?")
    for count in (2, 3):
        page.get_by_role("button", name="Regenerate").click()
        expect(page.locator(".version")).to_have_text(f"{count}/{count}")
    for name, shown in (("Previous", "2/3"), ("Previous", "1/3"), ("Next", "2/3")):
        page.get_by_role("button", name=f"{name} version").click()
        expect(page.locator(".version")).to_have_text(shown)
    expect(page.locator("article.assistant")).to_have_count(1)


def test_a_page_that_is_loaded_again_gets_the_rest(page: Page) -> None:
    """The reply goes on without the page, and streams to it when it is back."""
    say(page, "Tell me a story")
    reply(page).locator(".text").get_by_text("first").wait_for()
    page.reload()
    reply(page).locator(".text").get_by_text("everything to read").first.wait_for()
    wait_for_end(page)

    expect(page.locator("article")).to_have_count(2)
    assert reply(page).inner_text().count("lighthouse keeper") == 3


def test_the_ring_counts_by_kind_and_its_toggles_hold(page: Page) -> None:
    """Thinking that is sent again moves from left out to sent, also after a reload."""
    ask(page, "Is 91 a prime number?")
    ask(page, "Hello")
    page.get_by_role("button", name="Context").click()
    numbers = page.locator("#panel dd")
    before = [int(text) for text in numbers.all_inner_texts()]
    expect(page.locator("#ring > button")).to_contain_text(f"{sum(before[:4])} / 1,200")
    page.get_by_label("Send thinking again").check()
    expect(page.locator('dd[data-kind="withheld"]')).to_have_text("0")
    page.reload()
    page.get_by_role("button", name="Context").click()
    after = [int(text) for text in numbers.all_inner_texts()]

    expect(page.get_by_label("Send thinking again")).to_be_checked()
    assert before[4] > 0
    assert after[3] + after[4] == before[3] + before[4]
    assert after[4] == 0
    page.locator("#strip").select_option("all")
    expect(page.locator('dd[data-kind="withheld"]')).to_have_text(str(before[4]))


def test_a_search_finds_the_chat_that_says_it(page: Page) -> None:
    """With the words around what was found."""
    ask(page, "Is 91 a prime number?")
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_text("What would you like to know?")).to_be_visible()
    ask(page, "Hello there")
    page.get_by_label("Search conversations").fill("digits")

    expect(page.locator("#list a")).to_have_count(1)
    expect(page.locator("#list small")).to_contain_text("its digits add up")
    page.locator("#list a").click()
    expect(reply(page)).to_contain_text("91 is not a prime number")


def test_an_opinion_is_kept_with_its_reply(page: Page) -> None:
    """It is there after a reload, and can be taken back."""
    ask(page, "Hello")
    page.get_by_role("button", name="Good").click()
    expect(page.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Good").click()
    expect(page.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "false")


def test_chats_are_listed_and_deleted(page: Page) -> None:
    """By the first thing that was said in them; the one that is deleted is gone."""
    ask(page, "Is 91 a prime number?")
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_text("What would you like to know?")).to_be_visible()
    ask(page, "Hello there")
    expect(page.locator("#list a span")).to_have_text(["Hello there", "Is 91 a prime number?"])
    page.locator("#list li").last.hover()
    page.get_by_role("button", name=re.compile("Delete Is 91")).click()

    expect(page.locator("#list a span")).to_have_text(["Hello there"])
    address = page.url.partition("#")[0]
    listed = httpx.get(f"{address}api/chats", trust_env=False).json()["items"]
    assert [one["title"] for one in listed] == ["Hello there"]


def test_a_chat_is_renamed_and_archived(page: Page) -> None:
    """It leaves the list, and comes back from the list of archived ones."""
    ask(page, "Hello there")
    page.locator("#title").click()
    expect(page.locator("#title")).to_have_text("Greetings")
    page.locator("#list li").hover()
    page.get_by_role("button", name="Archive Greetings").click()
    expect(page.locator("#list a")).to_have_count(0)
    page.get_by_label("Archived").check()
    page.locator("#list li").hover()
    page.get_by_role("button", name="Restore Greetings").click()
    expect(page.locator("#list a")).to_have_count(0)
    page.get_by_label("Archived").uncheck()

    expect(page.locator("#list a span")).to_have_text(["Greetings"])


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63b059"
    "1200023801338217d5130000000049454e44ae426082"
)


def test_a_picture_goes_to_the_model_that_takes_it(page: Page) -> None:
    """The other one answers without it, and the page says so."""
    file = {"name": "dot.png", "mimeType": "image/png", "buffer": PICTURE}
    page.get_by_label("Model", exact=True).select_option("deepseek-v4")
    page.locator("#picker").set_input_files(file)  # type: ignore[arg-type]
    expect(page.get_by_role("button", name="Remove dot.png")).to_be_visible()
    ask(page, "Which type has this?")
    expect(page.get_by_alt_text("dot.png")).to_be_visible()
    expect(reply(page)).to_contain_text("left out: image")
    page.get_by_label("Model", exact=True).select_option("kimi-k3")
    page.get_by_role("button", name="Regenerate").click()

    expect(reply(page)).to_contain_text("its type is image/png.")
    wait_for_end(page)
    page.reload()
    expect(page.get_by_label("Model", exact=True)).to_have_value("kimi-k3")


def test_a_long_chat_is_made_shorter_and_long_again(page: Page) -> None:
    """A summary is shown where it is sent, and undone there."""
    shorten = page.get_by_role("button", name="Make it shorter")
    for _ in range(8):
        if not shorten.count():
            ask(page, "Tell me a story")
    before = page.locator("#context").inner_text()
    shorten.click()
    page.get_by_text("A summary is sent").click()
    expect(page.get_by_text("We have talked so far")).to_be_visible()
    expect(shorten).to_have_count(0)
    assert page.locator("#context").inner_text() != before
    page.get_by_role("button", name="Undo").click()

    expect(shorten).to_be_visible()
    expect(page.get_by_text("A summary is sent")).to_have_count(0)
    assert page.locator("#context").inner_text() == before


def test_a_user_sees_the_cost_and_takes_all_data_along(page: Page, tmp_path: Path) -> None:
    """Downloaded, erased and restored, the chat is the same."""
    ask(page, "Is 91 a prime number?")
    page.get_by_role("button", name="Usage and data").click()
    expect(page.locator("#data td").nth(1)).to_have_text("deepseek-flash")
    expect(page.locator("#data td").last).to_have_text(re.compile(r"\$0\.0000[1-9]"))
    expect(page.locator("#budget")).to_contain_text(
        re.compile(r"used [1-9]\d* of 50,000 tokens of thinking")
    )
    kept = []
    for name in ("Download this chat", "Download all"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        kept.append(tmp_path / download.value.suggested_filename)
        download.value.save_as(kept[-1])
    page.get_by_role("button", name="Erase all").click()
    expect(page.locator("#data")).to_contain_text("1 conversations are erased.")
    expect(page.locator("#list a")).to_have_count(0)
    page.locator("#data input").set_input_files(kept[1])

    expect(page.locator("#list a span")).to_have_text("Is 91 a prime number?")
    assert [path.suffix for path in kept] == [".md", ".jsonl"]
    assert "> Try the small primes." in kept[0].read_text("utf-8")


def test_a_phone_and_a_keyboard_are_enough(page: Page) -> None:
    """Nothing is wider than 320 pixels; each control is reached, and the focus stays."""
    page.set_viewport_size({"width": 320, "height": 640})
    ask(page, "Is 91 a prime number?")
    page.locator("#context").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_label("Send thinking again")).to_be_checked()
    expect(page.get_by_label("Send thinking again")).to_be_focused()
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_have_count(0)
    page.get_by_role("button", name="Conversations").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="New chat")).to_be_focused()
    for _ in range(3):  # the search, the chat, its first button
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.locator("#list a")).to_have_count(0)
    assert widths == [320, 320]
