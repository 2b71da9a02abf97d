"""The story of `demo`: replies that are recorded, a server that refuses, the next request.

The streams ship with the package; each has its thinking in another place. Everything printed is
read back from the store, but for the pieces of the streams.
"""

from __future__ import annotations

import io
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from reasoning_store import (
    InvalidCall,
    Message,
    NotFound,
    Session,
    Store,
    TextBlock,
    ThinkingBlock,
    ToolResponseBlock,
    assistant,
    tool,
    user,
)
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call
from reasoning_store.cli.demo_stage import Stage
from reasoning_store.cli.output import plural, print_answer
from reasoning_store.cli.program import PROGRAM
from reasoning_store.cli.transcript import argument_text
from reasoning_store.formats import message_to_json
from reasoning_store.testing import refusal, stream

_NAME = "demo"
LIMIT = 1000
"""A context window that this conversation fills by half."""


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
        "An open model: tags inside the answer, cut anywhere",
        "Is 91 prime?",
        "tags_split",
        model="open-model",
    ),
    Turn(
        "DeepSeek: a field of its own, and the same again in tags",
        "What divides 91?",
        "native_and_tagged",
        provider="deepseek",
        model="deepseek-flash",
    ),
    Turn(
        "Claude: a block with a signature",
        "How many divisors has it?",
        "signed_thinking",
        provider="anthropic",
        model="claude-sonnet-4-5",
        api="anthropic.messages",
    ),
    Turn(
        "Kimi: a field of its own, then a tool call",
        "And the next prime after it?",
        "reasoning_then_tool_call",
        provider="moonshot",
        model="kimi-k2-thinking",
    ),
)
KIMI = TURNS[-1]
_RESULT = "97"
_LAST_REPLY = assistant(
    ThinkingBlock(thought="The tool says 97.", source_field="reasoning_content"),
    TextBlock(text="The next prime after 91 is 97."),
)
_NO_FLOOR = {"reasoning.floor": "off"}
_OPENERS = {"darwin": "open", "win32": "start"}
NEXT = """\
with rs.Store("sqlite:///chat.db") as store:
    session = store.session("first", create=True)
    session.append(rs.user("Is 91 prime?"))
    request = session.build_request(provider="deepseek", model="deepseek-flash")"""


def read_capture(name: str) -> list[dict[str, Any]]:
    """Return a stream that ships with the package, as decoded events."""
    text = files("reasoning_store.cli").joinpath("streams", f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def run_demo(call: Call, folder: str | None, speed: float) -> None:
    """Play the demo, and leave its database and its page in a folder."""
    with (
        _demo_folder(folder) as place,
        _open_database(call, place / "demo.db") as store,
        redirect_stdout(io.StringIO()) if call.json else nullcontext(),
    ):
        stage = Stage(speed)
        session = store.session(_NAME, create=True, title="The demo")
        page = place / "demo.html"
        database = call.db if call.db_was_named and call.db else str(place / "demo.db")
        _record_replies(stage, session)
        _meet_strict_server(stage, session)
        _look_at_request(stage, session)
        _write_page(page, session)
        _show_next_steps(stage, database, page)
        usage = session.usage(limit=LIMIT)
        data = {
            "effective": usage.effective,
            "raw": usage.raw,
            "limit": LIMIT,
            "messages": [message_to_json(item.message) for item in session.history()],
            "request": session.build_request().body,
        }
    print_answer(call, {**data, "database": database, "page": str(page)})


@contextmanager
def _demo_folder(named: str | None) -> Iterator[Path]:
    """Make the folder of the demo; a temporary one is removed if the demo does not end well."""
    if named is not None:
        Path(named).mkdir(parents=True, exist_ok=True)
        yield Path(named)
        return
    folder = tempfile.mkdtemp(prefix="reasoning-store-demo-")
    try:
        yield Path(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _open_database(call: Call, otherwise: Path) -> Store:
    """Open the database that was named, or else another one; no demo was in it yet."""
    named = call.db_was_named
    store = store_access.open_or_create(call) if named else Store(f"sqlite:///{otherwise}")
    try:
        store.session(_NAME)
    except NotFound:
        return store
    store.close()
    option = "--db" if named else "--folder"
    raise InvalidCall(
        f"the database has a session {_NAME!r} already", hint=f"{option} names another place"
    )


def _record_replies(stage: Stage, session: Session) -> None:
    stage.scene("1. Four models, each with its thinking in another place")
    for turn in TURNS:
        stage.line()
        stage.line(turn.title, "bold")
        session.append(user(turn.question))
        stage.labelled("user", turn.question, "cyan")
        message = _record_reply(stage, session, turn, read_capture(turn.stream))
        if notes := ", ".join(_ingress_notes(message)):
            stage.labelled("stored", notes, "green")
        for call in message.tool_calls:
            stage.labelled("calls", f"{call.name}({argument_text(call)})")
            response = ToolResponseBlock(call_id=call.id, tool_name=call.name, result=_RESULT)
            session.append(tool(response))
            stage.labelled("tool", _RESULT)
        stage.pause(1)


def _record_reply(
    stage: Stage, session: Session, turn: Turn, events: Sequence[dict[str, Any]]
) -> Message:
    """Record a stream as the reply, and show how it came and what was stored."""
    request = session.build_request(provider=turn.provider, model=turn.model, api=turn.api)
    with session.record(iter(events), request=request) as reply:
        list(reply)
    assert reply.stored is not None
    message = session.get(reply.stored.position).message
    for number, line in enumerate(_on_the_wire(events)):
        stage.labelled("" if number else "wire", line)
    for block in message.thinking:
        stage.labelled("thought", block.thought, "dim")
    stage.labelled("answer", message.text, "bold")
    return message


def _meet_strict_server(stage: Stage, session: Session) -> None:
    stage.scene("2. A server that refuses, and the request that it takes")
    stage.paragraph(
        "The tool has answered, so the conversation goes back to Kimi. Its server wants the "
        "thought that led to the call. Most programs keep role, text and calls:"
    )
    _send(stage, session, "list of messages", settings=_NO_FLOOR)
    stage.pause(2)
    stage.line()
    stage.paragraph("The store has the thought, and sends it:")
    _send(stage, session, "session.build_request()")
    stage.line()
    verdicts = session.build_request().verdicts
    stage.table(
        ("thought of", "tokens", "", "because"),
        [
            (
                f"message {one.message}",
                str(one.tokens),
                "sent" if one.kept else "left out",
                one.reason,
            )
            for one in verdicts
        ],
        right=("tokens",),
    )
    stage.line()
    events = stream(_LAST_REPLY, api=KIMI.api, provider=KIMI.provider, model=KIMI.model, pieces=6)
    _record_reply(stage, session, KIMI, events)


def _send(stage: Stage, session: Session, title: str, **options: Any) -> None:
    """Send the next request to the strict server, and show its answer."""
    body = session.build_request(**options).body
    assert KIMI.provider is not None
    refused = refusal(body, provider=KIMI.provider, model=KIMI.model)
    stage.line()
    stage.labelled("POST", f"{title}, {plural(len(body['messages']), 'message')}")
    stage.pause(1)
    if refused is None:
        stage.labelled("200", "OK", "bold green")
    else:
        stage.labelled("400", refused, "bold red")


def _look_at_request(stage: Stage, session: Session) -> None:
    stage.scene("3. The next request, before you send it")
    session.append(user("Thank you. And the one after that?"))
    _show_usage(stage, session)
    stage.paragraph("Every choice, with its tokens; * is the one that holds now:")
    stage.line()
    heads, *lines = session.what_if().table()
    stage.table(heads, lines, right=("tokens",))
    stage.pause(2)
    stage.line()
    stage.labelled("set", "reasoning.includeInContext = true")
    session.settings.set("reasoning.includeInContext", True)
    _show_usage(stage, session)
    stored = sum(len(item.message.thinking) for item in session.history())
    stage.labelled("stored", f"{stored} thoughts, whatever is sent", "green")


def _show_usage(stage: Stage, session: Session) -> None:
    usage = session.usage(limit=LIMIT)
    stage.labelled("usage", f"{usage.mark}{usage} tokens of the model's context window")
    stage.page.bar(usage.effective / LIMIT, "green")
    stage.line()


def _write_page(page: Path, session: Session) -> None:
    from reasoning_store.server.inspector.file_page import file_page

    page.write_text(file_page(session, session.history(), limit=LIMIT), "utf-8")


def _show_next_steps(stage: Stage, database: str, page: Path) -> None:
    stage.scene("Yours to look at")
    opener = _OPENERS.get(sys.platform, "xdg-open")
    program = _program_name()
    stage.line(shlex.join([opener, str(page)]))
    for words in (("show", _NAME), ("request", _NAME, "--every"), ("search", "prime")):
        stage.line(shlex.join([program, *words, "--db", database]))
    stage.line()
    stage.line("In Python (import reasoning_store as rs):")
    stage.line()
    stage.line(NEXT)


def _program_name() -> str:
    """Return the word that calls this program: its path where no folder of PATH has it."""
    if shutil.which(PROGRAM) is None and Path(sys.argv[0]).name == PROGRAM:
        return sys.argv[0]
    return PROGRAM


_ON_THE_WIRE = tuple("content reasoning_content thinking text signature name arguments".split())


def _on_the_wire(events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the pieces of a stream, joined where pieces of one field follow each other."""
    pieces = (piece for event in events for piece in _pieces(_deltas(event)))
    for field, together in groupby(pieces, key=itemgetter(0)):
        yield f"{field}: {' '.join(repr(text) for _, text in together)}"


def _deltas(event: dict[str, Any]) -> list[Any]:
    """Return what an event adds to the reply, in OpenAI's protocol or in Anthropic's."""
    return [choice["delta"] for choice in event.get("choices", ())] or [event.get("delta")]


def _pieces(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a value that show, each with its field, however deep it lies."""
    if isinstance(value, str):
        if value and field in _ON_THE_WIRE:
            yield field, value
    elif isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else ((field, one) for one in value)
        for name, one in inside:
            yield from _pieces(one, name)


def _ingress_notes(message: Message) -> Iterator[str]:
    """Yield notes on what ingress did with a reply."""
    notes = message.metadata or {}
    if count := notes.get("strippedDelimiters"):
        yield f"{plural(count, 'tag')} taken out"
    if notes.get("suppressedDuplicates"):
        yield "the thought stored once"
    if any(block.signature for block in message.thinking):
        yield "with its signature, which is sent to Anthropic only"
