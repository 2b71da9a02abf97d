"""The main job in a minute: streams in, stored, and out again as the next request.

Replays five streams that ship with the package through the real thing, into a database that
is thrown away: each carries its thinking in another place. What is printed was read back
from the store, but for what came over the wire. No key, no network.

The story is told by ``_story`` as parts of a page; whether anybody reads them is not its
concern, so a program that asks for JSON gets what the same story came to.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from reasoning_store.blocks import Message, ToolResponseBlock, tool, user
from reasoning_store.cli.call import Call
from reasoning_store.cli.output import Page, answer, plural
from reasoning_store.codec import argument_text, message_to_json
from reasoning_store.egress.what_if import COLUMNS, cells
from reasoning_store.session import Session
from reasoning_store.shortening import Plan
from reasoning_store.store import Store

LIMIT = 212_000
SMALL = 300
"""A context that this conversation overfills."""
WIDTH = 80


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and the stream that answers it."""

    title: str
    question: str
    stream: str
    model: str
    provider: str | None = None
    api: str = "openai.chat"


TURNS = (
    Turn("tags in the answer, cut anywhere", "Is 91 prime?", "tags_split", model="open-model"),
    Turn("a close that nobody opened", "Is there a last prime?", "stray_close", model="open-model"),
    Turn(
        "a field of its own, and the same again in tags",
        "What divides 91?",
        "native_and_tagged",
        provider="deepseek",
        model="deepseek-chat",
    ),
    Turn(
        "a block with a signature",
        "How many divisors has it?",
        "signed_thinking",
        provider="anthropic",
        model="claude-sonnet-4-5",
        api="anthropic.messages",
    ),
    Turn(
        "a field of its own, then a tool call",
        "And the next prime after it?",
        "reasoning_then_tool_call",
        provider="moonshot",
        model="kimi-k2-thinking",
    ),
)

NEXT = """\
with rs.Store("sqlite:///chat.db") as store:
    session = store.session("first", create=True)
    session.append(rs.user("Is 91 prime?"))
    request = session.build_request(provider="deepseek", model="deepseek-chat")"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the page."""

    text: str = ""
    style: str = ""

    def write(self, page: Page) -> None:
        page.line(self.text, self.style)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their names; the row with a star is marked."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()

    def write(self, page: Page) -> None:
        page.table(
            self.columns,
            self.rows,
            right=self.right,
            styles=lambda row: "bold" if row[0] == "*" else "",
        )


Story = Iterator[Line | Table]


def captured(name: str) -> list[dict[str, Any]]:
    """Return a stream that ships with the package, as decoded events."""
    text = files("reasoning_store.cli").joinpath("streams", f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def show(call: Call) -> None:
    """Run the tour: for a person on the page, for a program as what it came to."""
    page = Page()
    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        Store(f"sqlite:///{Path(folder) / 'demo.db'}") as store,
    ):
        session = store.session("demo", create=True, title="The demo")
        for part in _story(session):
            if not call.json:
                part.write(page)
        if call.json:
            answer(call, _data(session), lambda page: None)


def _data(session: Session) -> dict[str, Any]:
    """Return what the demo came to, for a program."""
    usage = session.usage(limit=LIMIT)
    return {
        "effective": usage.effective,
        "raw": usage.raw,
        "limit": LIMIT,
        "messages": [message_to_json(item.message) for item in session.history()],
        "request": session.build_request().body,
    }


def _story(session: Session) -> Story:
    yield from _title("1. Five streams, each with its thinking in another place")
    for number, turn in enumerate(TURNS):
        if number:
            yield Line()
        yield from _played(session, turn)

    yield from _title("2. What the next request would carry, before anything is sent")
    yield from _said("usage", f"{session.usage(limit=LIMIT)} (effective/limit)")
    yield Line()
    yield _verdicts(session)

    yield from _title("3. What other settings would send")
    yield Table(COLUMNS, [cells(row) for row in session.what_if().rows])
    yield Line()
    yield from _said("floor off", session.build_request(settings=_NO_FLOOR).warnings[0].text)

    yield from _title("4. A setting changes; nothing is stored anew")
    before = _replies(session)
    session.settings.set("reasoning.includeInContext", True)
    yield from _said("set", "reasoning.includeInContext = true")
    yield from _said("usage", str(session.usage(limit=LIMIT)))
    yield Line()
    yield Table(
        ("reply", "was sent as", "is sent as"),
        [
            (_short(reply["content"]), _fields(old), _fields(reply))
            for old, reply in zip(before, _replies(session), strict=True)
        ],
    )
    yield Line()
    stored = sum(len(item.message.thinking) for item in session.history())
    yield from _said("stored", f"{stored} thoughts, whatever is sent")

    yield from _title(f"5. A model whose context is {SMALL} tokens: does it have to be shorter?")
    yield from _decision(session.compression(limit=SMALL, reserve=SMALL // 4))

    yield from _title("Next")
    yield Line("In Python (import reasoning_store as rs):\n")
    yield Line(NEXT)
    yield Line("\nOn the command line: reasoning-store --help")


_NO_FLOOR = {"reasoning.floor": "off"}


def _played(session: Session, turn: Turn) -> Story:
    """Replay a stream as the reply to a question, and tell what was stored."""
    yield Line(turn.title, "bold")
    session.append(user(turn.question))
    yield from _said("user", turn.question)
    stream = captured(turn.stream)
    pieces = [piece for event in stream if (piece := _content(event))]
    if "think>" in "".join(pieces):
        yield from _said("wire", " ".join(map(repr, pieces)))
    with session.record(
        iter(stream), provider=turn.provider, model=turn.model, api=turn.api
    ) as reply:
        for _ in reply:
            pass
    assert reply.stored is not None
    message = session.get(reply.stored.position).message
    for block in message.thinking:
        yield from _said("thought", block.thought, "dim")
    yield from _said("answer", message.text)
    if told := ", ".join(_done(message)):
        yield from _said("stored", told)
    for call in message.tool_calls:
        yield from _said("calls", f"{call.name}({argument_text(call)})")
        session.append(tool(ToolResponseBlock(call_id=call.id, tool_name=call.name, result="97")))
        yield from _said("tool", "97")


def _content(event: dict[str, Any]) -> str:
    """Return the text of an event of OpenAI's, the only one here that may hold tags."""
    return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))


def _done(message: Message) -> Iterator[str]:
    """Tell what happened to a reply on its way in."""
    counted = message.metadata or {}
    if count := counted.get("strippedDelimiters"):
        yield f"without {plural(count, 'delimiter')}"
    if counted.get("suppressedDuplicates"):
        yield "the thought once"
    if any(block.signature for block in message.thinking):
        yield "with the signature, which goes back only to who made it"


def _verdicts(session: Session) -> Table:
    return Table(
        ("thinking of", "tokens", "goes", "rule"),
        [
            (f"message {one.message}", str(one.tokens), "yes" if one.kept else "no", one.rule)
            for one in session.build_request().verdicts
        ],
        right=("tokens",),
    )


def _decision(plan: Plan) -> Story:
    yield from _said("decision", f"{plan.action} ({', '.join(plan.reasons)})")
    for step in plan.steps:
        yield from _said("step", f"{step.kind}: frees {plural(step.tokens, 'token')}")
    yield from _said("request", f"now {plan.effective}, then {plan.after}, of {plan.usable} usable")


def _title(text: str) -> Story:
    yield Line()
    yield Line(text, "bold green")
    yield Line()


def _said(label: str, text: str, style: str = "") -> Story:
    """Tell a labelled line, folded under itself at the width of the page."""
    for line in _folded(text, WIDTH - 10):
        yield Line(f"{label:<10}{line}".rstrip(), style)
        label = ""


def _folded(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def _replies(session: Session) -> list[dict[str, Any]]:
    messages = session.build_request().body["messages"]
    return [message for message in messages if message["role"] == "assistant"]


def _fields(reply: dict[str, Any]) -> str:
    return ", ".join(name for name in reply if name not in ("role", "tool_calls"))


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:21] + "..."
