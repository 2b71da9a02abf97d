"""Make the pictures of the README: the demo in a terminal, and the chat page in a browser.

    python tools/make_pictures.py demo chat inspector

`demo` is played in a terminal of its own, and what it writes becomes an SVG that moves. `chat`
needs Chromium, and drives the example `chat_app` with its scripted model; `inspector` shows the
database that the demo leaves.
"""

from __future__ import annotations

import html
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PICTURES = CHECKOUT / "docs" / "pictures"
DEMO, CHAT = PICTURES / "demo.svg", PICTURES / "chat.png"
INSPECTOR = {"light": PICTURES / "inspector.png", "dark": PICTURES / "inspector-dark.png"}
COLUMNS, ROWS = 80, 26
_STEP = 0.12
"""Seconds between two frames."""
_LAST = 5.0
"""Seconds for which the last frame stays."""
_FIRST = 4
"""Lines with text in the first frame."""


@dataclass(frozen=True)
class Style:
    """The look of a character."""

    bold: bool = False
    dim: bool = False
    colour: int | None = None

    def after(self, codes: Sequence[int]) -> Style:
        """Return the style after the numbers of an escape sequence."""
        style = self
        for code in codes:
            if code == 0:
                style = Style()
            elif code == 1:
                style = replace(style, bold=True)
            elif code == 2:
                style = replace(style, dim=True)
            elif 30 <= code <= 37:
                style = replace(style, colour=code - 30)
        return style

    def css_class(self) -> str:
        colour = "" if self.colour is None else f"c{self.colour}"
        return " ".join(filter(None, ("b" if self.bold else "", "d" if self.dim else "", colour)))


Row = tuple[tuple[str, str], ...]
"""A line of the terminal: its texts, each with its classes."""
_TOKEN = re.compile(r"\x1b\[([\d;?]*)([a-zA-Z])|[^\x1b]")


@dataclass
class Terminal:
    """The lines that a program has written; it knows what the demo uses."""

    rows: list[list[tuple[str, Style]]] = field(default_factory=lambda: [[]])
    column: int = 0
    style: Style = Style()

    def write(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            row = self.rows[-1]
            if token[2] == "m":
                self.style = self.style.after([int(code or 0) for code in token[1].split(";")])
            elif token[2] is not None:
                raise ValueError(f"the terminal has no {token[0]!r}")
            elif token[0] == "\n":
                self.rows.append([])
                self.column = 0
            elif token[0] == "\r":
                self.column = 0
            else:
                row[self.column : self.column + 1] = [(token[0], self.style)]
                self.column += 1

    def lines(self) -> list[Row]:
        return [
            tuple(
                ("".join(letter for letter, _ in run), style.css_class())
                for style, run in ((s, list(r)) for s, r in groupby(row, key=lambda one: one[1]))
            )
            for row in self.rows
        ]


Recording = list[tuple[float, str]]
"""The pieces that a program wrote, each with its second."""


def record_demo(speed: float = 1.0) -> Recording:
    """Play the demo in a terminal, and return what it writes."""
    ours, theirs = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        running = subprocess.Popen(
            [
                *(sys.executable, "-m", "reasoning_store", "demo", "--folder", "tour"),
                *("--speed", str(speed)),
            ],
            stdin=theirs,
            stdout=theirs,
            cwd=folder,
            env=_environment(folder, TERM="xterm-256color", COLUMNS=str(COLUMNS)),
        )
        os.close(theirs)
        pieces = [(time.monotonic() - begun, data) for data in _read(ours)]
        if running.wait() != 0:
            raise SystemExit("the demo failed")
    recording, rest = [], b""
    for second, data in pieces:
        whole = rest + data
        text = whole.decode("utf-8", "ignore")
        rest = whole[len(text.encode()) :]
        recording.append((second, text))
    return recording


def _environment(folder: str, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": folder, "LANG": "C.UTF-8", **more}


def _read(number: int) -> Iterator[bytes]:
    with os.fdopen(number, "rb", buffering=0) as terminal:
        while True:
            try:
                data = terminal.read(65536)
            except OSError:  # Linux reports the end of a terminal so
                return
            if not data:
                return
            yield data


def frames(recording: Recording) -> list[tuple[float, list[Row]]]:
    """Return the lines of the terminal at each step at which they changed.

    The first frame is the first that shows a question, so that no empty window is seen.
    """
    terminal = Terminal()
    found: list[tuple[float, list[Row]]] = []
    for step, pieces in groupby(recording, key=lambda piece: int(piece[0] / _STEP)):
        terminal.write("".join(text for _, text in pieces))
        found.append((step * _STEP, terminal.lines()))
    while sum(map(bool, found[0][1])) < _FIRST:
        del found[0]
    start = found[0][0]
    return [(second - start, rows) for second, rows in found]


_WIDTH, _HEIGHT, _MARGIN = 8.4, 19, 16
_COLOURS = {1: "#ff7b72", 2: "#56d364", 3: "#e3b341", 4: "#79c0ff", 5: "#d2a8ff", 6: "#76e3ea"}
_STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #d6deeb; white-space: pre }
.b { font-weight: 700 } .d { fill: #8b98a9 }
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
"""


def draw(shots: Sequence[tuple[float, list[Row]]], title: str, description: str) -> str:
    """Return an SVG that plays the frames again and again; its last frame where nothing moves."""
    length = shots[-1][0] + _LAST
    rules: dict[str, str] = {}
    size = (COLUMNS * _WIDTH + 2 * _MARGIN, ROWS * _HEIGHT + 2 * _MARGIN + 24)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]:g} {size[1]:g}" '
        'role="img">',
        f"<title>{html.escape(title)}</title>",
        f"<desc>{html.escape(description)}</desc>",
    ]
    texts = [
        _text(row, number, _class_of(rules, length, since, until))
        for number, row, since, until in _spans(shots, length)
    ]
    scroll = _scroll(shots, length)
    colours = "\n".join(f".c{n} {{ fill: {value} }}" for n, value in _COLOURS.items())
    lines += ["<style>", _STYLE.strip(), colours, *rules.values(), scroll, "</style>"]
    lines += [
        '<rect width="100%" height="100%" rx="8" fill="#0d1520"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="18" r="5" fill="#33415a"/>' for n in range(3)),
        f'<svg x="{_MARGIN}" y="{_MARGIN + 20}" width="{COLUMNS * _WIDTH:g}" '
        f'height="{ROWS * _HEIGHT + 4}">',
        '<g class="page">',
        *texts,
        "</g></svg></svg>",
    ]
    return "\n".join(lines) + "\n"


def _spans(
    shots: Sequence[tuple[float, list[Row]]], length: float
) -> Iterator[tuple[int, Row, float, float]]:
    """Yield each state of a line, with the seconds from and until which it is seen."""
    ends = [*(second for second, _ in shots[1:]), length]
    for number in range(len(shots[-1][1])):
        seen = [
            (rows[number] if number < len(rows) else (), second, end)
            for (second, rows), end in zip(shots, ends, strict=True)
        ]
        for row, together in groupby(seen, key=lambda one: one[0]):
            times = list(together)
            if row:
                yield number, row, times[0][1], times[-1][2]


def _class_of(rules: dict[str, str], length: float, since: float, until: float) -> str:
    """Return the class of what is seen from one second until another; add its rule."""
    first, last = 100 * since / length, 100 * until / length
    if since == 0 and until == length:
        return ""
    name = f"t{round(since / _STEP)}-{round(until / _STEP)}"
    if name not in rules:
        hidden = "{ visibility: hidden }"
        at_rest = "visibility: hidden; " if until < length else ""
        after = f" {last:.2f}%, 100% {hidden}" if until < length else ""
        rules[name] = (
            f".{name} {{ {at_rest}animation: {name} {length:.1f}s step-end infinite }}\n"
            f"@keyframes {name} {{ 0% {hidden} {first:.2f}% {{ visibility: visible }}{after} }}"
        )
    return name


def _scroll(shots: Sequence[tuple[float, list[Row]]], length: float) -> str:
    """Return the rules that move the page up when it is longer than the window."""
    tops = [(second, max(0, len(rows) - ROWS)) for second, rows in shots]
    steps = [next(group) for _, group in groupby(tops, key=lambda one: one[1])]
    moves = " ".join(
        f"{100 * second / length:.2f}% {{ transform: translateY({-top * _HEIGHT}px) }}"
        for second, top in steps
    )
    end = f"transform: translateY({-steps[-1][1] * _HEIGHT}px)"
    return (
        f".page {{ {end}; animation: page {length:.1f}s step-end infinite }}\n"
        f"@keyframes page {{ {moves} }}"
    )


def _text(row: Row, number: int, name: str) -> str:
    spans = "".join(
        f'<tspan class="{css}">{html.escape(text)}</tspan>' if css else html.escape(text)
        for text, css in row
    )
    seen = f' class="{name}"' if name else ""
    return f'<text{seen} y="{(number + 1) * _HEIGHT - 5}" xml:space="preserve">{spans}</text>'


def draw_demo() -> None:
    """Play the demo, and draw it."""
    shots = frames(record_demo())
    DEMO.write_text(draw(shots, "The demo, played in a terminal", DESCRIPTION), "utf-8")
    print(f"{DEMO.relative_to(CHECKOUT)}: {shots[-1][0]:.0f} s, {DEMO.stat().st_size // 1024} kB")


@contextmanager
def chat_app(folder: Path) -> Iterator[str]:
    """Run the chat application of the examples, and return its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "chat:app", "--log-level", "error"),
                *("--fd", str(listener.fileno())),
            ],
            cwd=CHECKOUT / "examples" / "chat_app",
            env=_environment(
                str(folder),
                CHAT_APP_PAUSE="0.01",
                REASONING_STORE_URL=f"sqlite:///{folder / 'chat.db'}",
            ),
            pass_fds=[listener.fileno()],
        )
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.terminate()
            running.wait()


def photograph_chat() -> None:
    """Lead a conversation on the chat page, and photograph it."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("the picture of the page needs Chromium: apt-get install chromium")
    with (
        tempfile.TemporaryDirectory() as folder,
        chat_app(Path(folder)) as address,
        sync_playwright() as playwright,
    ):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(base_url=address, viewport={"width": 1120, "height": 760})
        page.goto("/")
        for number, chat in enumerate(CHATS):
            if number:
                page.get_by_role("button", name="New chat").click()
            for question in chat:
                page.get_by_label("Message", exact=True).fill(question)
                page.get_by_label("Message", exact=True).press("Enter")
                page.get_by_role("button", name="Stop").wait_for()
                page.get_by_role("button", name="Send", exact=True).wait_for()
        page.get_by_role("button", name="Regenerate").last.click()
        page.get_by_text("2/2").wait_for()
        page.get_by_role("button", name="Send", exact=True).wait_for()
        page.get_by_text("Thought", exact=True).last.click()
        page.get_by_role("button", name="Context").click()
        page.wait_for_timeout(500)  # until nothing moves
        page.screenshot(path=CHAT)
        browser.close()
    print(f"{CHAT.relative_to(CHECKOUT)}: {CHAT.stat().st_size // 1024} kB")


def photograph_inspector() -> None:
    """Photograph the page of the demo's conversation, light and dark, with a toggle turned."""
    from playwright.sync_api import sync_playwright

    import reasoning_store as rs

    sys.path.insert(0, str(CHECKOUT))
    from tests.server.serving import serving

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("the picture of the page needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = [sys.executable, "-m", "reasoning_store", "demo", "--folder", folder]
        subprocess.run(demo, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        with rs.Store(f"sqlite:///{folder}/demo.db") as store, serving(store) as address:
            for scheme, path in INSPECTOR.items():
                page = browser.new_page(
                    viewport={"width": 1240, "height": 800},
                    color_scheme=scheme,  # type: ignore[arg-type]  # light or dark
                )
                page.goto(f"{address}/session?id=demo&limit=1000")
                if scheme == "dark":
                    page.locator("#c-includeInContext").click()
                    page.locator("main .change").wait_for()
                page.locator("#m8 summary").click()
                page.screenshot(path=path)
                page.close()  # it follows the conversation, and the server waits for it
                print(f"{path.relative_to(CHECKOUT)}: {path.stat().st_size // 1024} kB")
        browser.close()


DESCRIPTION = (
    "Replies of four models type themselves, and their tags vanish on the way. A strict server "
    "refuses a list of messages, and takes the request of the store. A table shows the tokens of "
    "every choice."
)
CHATS = (
    ("Tell me a story",),
    ("How is the weather in Bergen?",),
    ("Is 91 a prime number?", "How is the weather in Oslo?"),
)
_PICTURES: Mapping[str, Callable[[], None]] = {
    "demo": draw_demo,
    "chat": photograph_chat,
    "inspector": photograph_inspector,
}


def main() -> None:
    for name in sys.argv[1:] or list(_PICTURES):
        if name not in _PICTURES:
            raise SystemExit(f"{name} is not one of: {', '.join(_PICTURES)}")
        _PICTURES[name]()


if __name__ == "__main__":
    main()
