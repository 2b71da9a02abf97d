"""The story of `demo`: five streams recorded, explained, and sent as the next request.

The streams ship with the package; each has its thinking in another place. Everything printed is
read back from the store, but for the pieces of the streams.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from reasoning_store.cli import hints, store_access
from reasoning_store.cli.command import Call
from reasoning_store.cli.output import Page, plural, print_answer, print_note, print_nothing
from reasoning_store.conversation.blocks import (
    Message,
    ToolResponseBlock,
    user,
)
from reasoning_store.conversation.codec import argument_text, message_to_json
from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.conversation.validation import tool
from reasoning_store.egress.compaction_plan import Limits, Plan, StepKind
from reasoning_store.egress.verdicts import Verdict
from reasoning_store.egress.what_if import COLUMNS, cells_of
from reasoning_store.ingress.reply_counters import read_counters
from reasoning_store.sessions.session import Session
from reasoning_store.store import Store

_NAME = "demo"
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
    Turn(
        "Tags inside the answer, cut anywhere",
        "Is 91 prime?",
        "tags_split",
        model="open-model",
    ),
    Turn(
        "A closing tag that nobody opened",
        "Is there a last prime?",
        "stray_close",
        model="open-model",
    ),
    Turn(
        "DeepSeek: a field of its own, and the same again in tags",
        "What divides 91?",
        "native_and_tagged",
        provider="deepseek",
        model="deepseek-chat",
    ),
    Turn(
        "Anthropic: a block with a signature",
        "How many divisors has it?",
        "signed_thinking",
        provider="anthropic",
        model="claude-sonnet-4-5",
        api="anthropic.messages",
    ),
    Turn(
        "Kimi, by Moonshot: a field of its own, then a tool call",
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


def read_capture(name: str) -> list[dict[str, Any]]:
    """Return a stream that ships with the package, as decoded events."""
    text = files("reasoning_store.cli").joinpath("streams", f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def run_demo(call: Call) -> None:
    """Run the tour: for a person on the page, for a program as what it came to."""
    page = Page()
    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        _open_database(call, f"sqlite:///{Path(folder) / 'demo.db'}") as store,
    ):
        session = store.session(_NAME, create=True, title="The demo")
        for part in _demo_story(session):
            if not call.json:
                part.write(page)
        if call.json:
            print_answer(call, _demo_data(session), print_nothing)
    if call.db_was_named:
        print_note(f"to look at it: {hints.command_line(call, 'show', _NAME)}")


def _open_database(call: Call, otherwise: str) -> Store:
    """Open the database that was named, in which there is no demo yet, or else another one."""
    if not call.db_was_named:
        return Store(otherwise)
    store = store_access.open_or_create(call)
    try:
        store.session(_NAME)
    except NotFound:
        return store
    store.close()
    raise InvalidCall(
        f"the database has a session {_NAME!r} already", hint="--db names another database"
    )


def _demo_data(session: Session) -> dict[str, Any]:
    """Return what the demo came to, for a program."""
    usage = session.usage(limit=LIMIT)
    return {
        "effective": usage.effective,
        "raw": usage.raw,
        "limit": LIMIT,
        "messages": [message_to_json(item.message) for item in session.history()],
        "request": session.build_request().body,
    }


def _demo_story(session: Session) -> Story:
    yield from _record_replies(session)
    yield from _explain_request(session)
    yield from _compare_policies(session)
    yield from _change_settings(session)
    yield from _shorten_request(session)
    yield from _next_steps()


def _record_replies(session: Session) -> Story:
    yield from _title_lines("1. Five replies, each with its thinking in another place")
    yield from _paragraph(
        "The wire is what a model streamed, piece by piece, each under the name of its field. "
        "The thought and the answer are what is in the store now."
    )
    for turn in TURNS:
        yield Line()
        yield from _play_turn(session, turn)


def _explain_request(session: Session) -> Story:
    request = session.build_request()
    whom = f"{request.target.model} of {request.target.provider}"
    yield from _title_lines("2. What the next request would carry, before anything is sent")
    yield from _labelled_line("to", f"{whom}, who gave the last reply")
    yield from _labelled_line("usage", _usage_text(session))
    yield Line()
    yield _verdict_table(request.verdicts)


def _compare_policies(session: Session) -> Story:
    yield from _title_lines("3. What other settings would send")
    yield Table(COLUMNS, [cells_of(row) for row in session.what_if().rows])
    yield Line()
    yield Table(
        ("column", "says"),
        [
            ("include", "whether thinking goes back to a model at all"),
            ("strip", "which of it is taken out even so"),
            ("legal", "whether the provider takes the request"),
            ("first change", "the message from which on it is not what it is now (*)"),
        ],
    )
    yield Line()
    verdicts = session.build_request().verdicts
    (demanded,) = (one.message for one in verdicts if one.rule == "required")
    yield from _paragraph(
        f"Message {demanded} goes in every row: it called a tool in the turn that is still open, "
        "and the provider demands the thought behind that back. This is the floor. It can be "
        "switched off, and then the request warns:"
    )
    yield from _labelled_line("warning", session.build_request(settings=_NO_FLOOR).warnings[0].text)


_NO_FLOOR = {"reasoning.floor": "off"}


def _change_settings(session: Session) -> Story:
    yield from _title_lines(
        "4. A setting changes: the next request is another, the store is the same"
    )
    before = _replies(session)
    session.settings.set("reasoning.includeInContext", True)
    yield from _labelled_line("set", "reasoning.includeInContext = true")
    yield from _labelled_line("usage", _usage_text(session))
    yield Line()
    yield Table(
        ("reply", "its fields before", "its fields now"),
        [
            (_short(reply["content"]), _fields(old), _fields(reply))
            for old, reply in zip(before, _replies(session), strict=True)
        ],
    )
    yield Line()
    stored = sum(len(item.message.thinking) for item in session.history())
    yield from _labelled_line("stored", f"{stored} thoughts, whatever is sent")


def _shorten_request(session: Session) -> Story:
    yield from _title_lines(
        f"5. A model whose context is {SMALL} tokens: must the conversation get shorter?"
    )
    yield from _explain_plan(session.compression(limit=SMALL, reserve=SMALL // 4))


def _next_steps() -> Story:
    yield from _title_lines("Next")
    yield Line("In Python (import reasoning_store as rs):\n")
    yield Line(NEXT)
    yield Line("\nOn the command line: reasoning-store --help")


def _play_turn(session: Session, turn: Turn) -> Story:
    """Replay a stream as the reply to a question, and tell what was stored."""
    yield Line(turn.title, "bold")
    session.append(user(turn.question))
    yield from _labelled_line("user", turn.question)
    stream = read_capture(turn.stream)
    yield from _labelled_lines("wire", _on_the_wire(stream))
    with session.record(
        iter(stream), provider=turn.provider, model=turn.model, api=turn.api
    ) as reply:
        for _ in reply:
            pass
    assert reply.stored is not None
    message = session.get(reply.stored.position).message
    for block in message.thinking:
        yield from _labelled_line("thought", block.thought, "dim")
    yield from _labelled_line("answer", message.text)
    if told := ", ".join(_ingress_notes(message)):
        yield from _labelled_line("stored", told)
    for call in message.tool_calls:
        yield from _labelled_line("calls", f"{call.name}({argument_text(call)})")
        session.append(tool(ToolResponseBlock(call_id=call.id, tool_name=call.name, result="97")))
        yield from _labelled_line("tool", "97")


def _on_the_wire(stream: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the pieces of a stream, joined where pieces of one field follow each other."""
    pieces = (piece for event in stream for piece in _pieces(_deltas(event)))
    for field, together in groupby(pieces, key=itemgetter(0)):
        yield f"{field}: {' '.join(repr(text) for _, text in together)}"


def _deltas(event: dict[str, Any]) -> list[Any]:
    """Return what an event adds to the reply, in OpenAI's protocol or in Anthropic's."""
    return [choice["delta"] for choice in event.get("choices", ())] or [event.get("delta")]


_NO_PIECE = {"role", "type", "id", "stop_reason"}
"""Fields of a delta whose texts are about the reply, and no part of it."""


def _pieces(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Return the texts in a value, each with the name of its field, however deep it lies."""
    if isinstance(value, str) and value:
        yield field, value
    elif isinstance(value, dict):
        for name, inside in value.items():
            if name not in _NO_PIECE:
                yield from _pieces(inside, name)
    elif isinstance(value, list):
        for inside in value:
            yield from _pieces(inside, field)


def _ingress_notes(message: Message) -> Iterator[str]:
    """Yield notes on what ingress did with a reply."""
    counters = read_counters(message.metadata)
    if count := counters.stripped_delimiters:
        yield f"{plural(count, 'delimiter')} taken out"
    if counters.suppressed_duplicates:
        yield "the thought kept once"
    if any(block.signature for block in message.thinking):
        yield "the signature kept, to go back only to who made it"


def _usage_text(session: Session) -> str:
    return f"{session.usage(limit=LIMIT)} (tokens to be sent / the model's limit)"


def _verdict_table(verdicts: Sequence[Verdict]) -> Table:
    return Table(
        ("thinking of", "tokens", "goes", "why"),
        [
            (f"message {one.message}", str(one.tokens), "yes" if one.kept else "no", one.reason)
            for one in verdicts
        ],
        right=("tokens",),
    )


def _explain_plan(plan: Plan) -> Story:
    """Show a plan step by step, and why each step but the last is not enough."""
    limits = Limits(limit=plan.limit, reserve=plan.reserve, threshold=plan.threshold)
    less = f"{plan.limit} less {plan.reserve} for the answer"
    yield from _labelled_line("room", f"{plan.usable} tokens: {less}")
    yield from _labelled_line("request", f"{plan.effective} tokens: {', '.join(plan.reasons)}")
    yield from _labelled_line(
        "goal", f"{limits.enough} or fewer, so that there is room to grow again"
    )
    left = plan.effective
    for step in plan.steps:
        left -= step.tokens
        enough = "enough" if left <= limits.enough else "not enough"
        yield from _labelled_line("step", f"{_STEPS[step.kind]}: {left} left, {enough}")
    yield from _labelled_line("decision", f"{plan.action}; nothing is done until you say so")


_STEPS: dict[StepKind, str] = {
    "strip": "strip old thinking",
    "clear": "clear old tool results",
    "summarize": "summarize old messages",
}


def _title_lines(text: str) -> Story:
    yield Line()
    yield Line(text, "bold green")
    yield Line()


def _paragraph(text: str) -> Story:
    """Yield the lines of a paragraph."""
    for line in _wrap_text(text, WIDTH):
        yield Line(line)


def _labelled_line(label: str, text: str, style: str = "") -> Story:
    """Yield a text after a label, wrapped at the width of the page."""
    return _labelled_lines(label, [text], style)


def _labelled_lines(label: str, texts: Iterable[str], style: str = "") -> Story:
    """Yield texts after one label."""
    for text in texts:
        for line in _wrap_text(text, WIDTH - 10):
            yield Line(f"{label:<10}{line}".rstrip(), style)
            label = ""


def _wrap_text(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in re.split(r" (?!')", text):  # a quote stays with what it opens or closes
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
