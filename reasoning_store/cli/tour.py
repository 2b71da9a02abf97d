"""The main job in a minute: streams in, stored, and out again as the next request.

Replays two streams that ship with the package through the real thing, into a database
that is thrown away. No key, no network. Plain text when nobody is at the terminal.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from reasoning_store.blocks import Message, ToolResponseBlock, tool, user
from reasoning_store.cli.call import Call
from reasoning_store.cli.console import Console
from reasoning_store.cli.output import answer
from reasoning_store.codec import argument_text, message_to_json
from reasoning_store.session import Session
from reasoning_store.store import Store

LIMIT = 212_000

MATRIX: tuple[tuple[str, dict[str, Any]], ...] = (
    ("include=false (the default)", {}),
    ("include=true, strip=none", {"reasoning.includeInContext": True}),
    (
        "include=true, strip=allButLast",
        {"reasoning.includeInContext": True, "reasoning.stripFromContext": "allButLast"},
    ),
    (
        "include=true, strip=all",
        {"reasoning.includeInContext": True, "reasoning.stripFromContext": "all"},
    ),
    ("include=false, floor=off", {"reasoning.floor": "off"}),
)

NEXT = """\
with rs.Store("sqlite:///chat.db") as store:
    session = store.session("first", create=True)
    session.append(rs.user("Is 91 prime?"))
    request = session.build_request(provider="deepseek", model="deepseek-chat")"""


def captured(name: str) -> list[dict[str, Any]]:
    """Return a stream that ships with the package, as decoded events."""
    text = files("reasoning_store.cli").joinpath("streams", f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def show(call: Call) -> None:
    """Run the tour: for a person on the page, for a program as what it came to."""
    out = io.StringIO() if call.json else None
    console = Console(file=out, soft_wrap=True)
    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        Store(f"sqlite:///{Path(folder) / 'demo.db'}") as store,
    ):
        session = store.session("demo", create=True, title="The demo")
        _run(console, session)
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


def _run(console: Console, session: Session) -> None:
    _title(console, "1. An open model writes its thinking into its answer")
    question = user("Is 91 prime?")
    session.append(question)
    _say(console, "user", question.text)
    stream = captured("tags_split")
    pieces = [c["choices"][0]["delta"].get("content") for c in stream if c["choices"]]
    _say(console, "wire", " ".join(repr(piece) for piece in pieces if piece))
    _record(console, session, stream, provider=None, model="open-model")

    _title(console, "2. Another host sends it in a field of its own, then calls a tool")
    question = user("And the next prime after it?")
    session.append(question)
    _say(console, "user", question.text)
    reply = _record(
        console,
        session,
        captured("reasoning_then_tool_call"),
        provider="moonshot",
        model="kimi-k2-thinking",
    )
    (call,) = reply.tool_calls
    session.append(tool(ToolResponseBlock(call_id=call.id, tool_name=call.name, result="97")))
    _say(console, "tool", "97")

    _title(console, "3. What the next request would carry, before anything is sent")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("settings")
    table.add_column("effective/limit", justify="right")
    table.add_column("thinking sent")
    for name, settings in MATRIX:
        usage = session.usage(limit=LIMIT, settings=settings)
        verdicts = session.build_request(settings=settings).verdicts
        table.add_row(name, str(usage), ", ".join(_verdict(v.kept, v.rule) for v in verdicts))
    console.print(table)
    request = session.build_request(settings={"reasoning.floor": "off"})
    for warning in request.warnings:
        _say(console, "warning", warning.text)

    _title(console, "4. A setting changes; nothing is stored anew")
    session.settings.set("reasoning.includeInContext", True)
    _say(console, "set", "reasoning.includeInContext = true")
    request = session.build_request()
    for message in request.body["messages"]:
        console.print(Text("   " + _short(message)))
    _say(console, "usage", str(session.usage(limit=LIMIT)))
    stored = sum(len(item.message.thinking) for item in session.history())
    _say(console, "stored", f"{stored} thoughts, whatever is sent")

    _title(console, "Next")
    console.print("In Python (import reasoning_store as rs):\n")
    console.print(Text(NEXT))
    console.print("\nOn the command line: reasoning-store --help")


def _record(
    console: Console,
    session: Session,
    stream: list[dict[str, Any]],
    *,
    provider: str | None,
    model: str,
) -> Message:
    with session.record(iter(stream), provider=provider, model=model, api="openai.chat") as reply:
        for _ in reply:
            pass
    assert reply.stored is not None
    message = reply.stored.message
    _say(console, "thought", "".join(block.thought for block in message.thinking), style="dim")
    _say(console, "answer", message.text)
    for call in message.tool_calls:
        _say(console, "calls", f"{call.name}({argument_text(call)})")
    return message


def _title(console: Console, text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]\n")


def _say(console: Console, label: str, text: str, style: str = "") -> None:
    """Print a labelled line, folded under itself at the width of the page."""
    width = min(console.width, 80) - 10
    lines = list(_folded(text, width))
    for n, line in enumerate(lines):
        row = Text(f"{label if n == 0 else '':<10}", style="bold")
        row.append(line, style=style or "not bold")
        console.print(row)


def _folded(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def _verdict(kept: bool, rule: str) -> str:
    return f"yes ({rule})" if kept and rule != "kept" else "yes" if kept else f"no ({rule})"


def _short(message: dict[str, Any]) -> str:
    text = json.dumps(message, ensure_ascii=False)
    return text if len(text) <= 76 else text[:73] + "..."
