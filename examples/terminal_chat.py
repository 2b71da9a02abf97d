"""A chat in the terminal, with any OpenAI-compatible server.

    export OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none
    python terminal_chat.py --model qwen3

Thinking is shown dimmed. Leave with Ctrl-D and come back: the conversation is in the file.
Ctrl-C ends a reply; what had arrived of it is kept. ``/help`` says what else there is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from openai import OpenAI, OpenAIError

import reasoning_store as rs

DIM, PLAIN = ("\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "")


def show(chunk: rs.Chunk, *, thinking: bool) -> None:
    match chunk:
        case rs.ReasoningChunk() if not thinking:
            pass
        case rs.ReasoningChunk(phase="start"):
            print(end=f"{DIM}[")
        case rs.ReasoningChunk(phase="delta", text=text):
            print(end=text, flush=True)
        case rs.ReasoningChunk(phase="end"):
            print(end=f"]{PLAIN}\n")
        case rs.TextChunk(text=text):
            print(end=text, flush=True)


class Chat:
    """One conversation at the terminal; ``to`` says whom it is with."""

    def __init__(self, client: OpenAI, session: rs.Session, to: dict[str, Any]) -> None:
        self.client = client
        self.session = session
        self.to = to
        self.commands: dict[str, Callable[..., None]] = {
            "/help": self.help,
            "/usage": self.usage,
            "/what-if": self.what_if,
            "/set": self.set,
            "/back": self.back,
        }

    def say(self, text: str) -> None:
        """Store what the user said, stream the reply, and store that."""
        self.session.append(rs.user(text))
        request = self.session.build_request(**self.to, extra={"stream": True})
        thinking = request.settings.include_in_response
        for warning in request.warnings:
            print(f"({warning.text})", file=sys.stderr)
        try:
            stream = self.client.chat.completions.create(**request.kwargs)
            with self.session.record(stream, request=request) as reply:
                for chunk in reply:
                    show(chunk, thinking=thinking)
            print()
        except KeyboardInterrupt:
            print(f"{PLAIN}\n(Stopped. What had arrived is kept.)")
        except OpenAIError as error:
            print(f"{PLAIN}\n({error} What had arrived is kept.)", file=sys.stderr)

    def help(self) -> None:
        """/help: say what there is"""
        for command in self.commands.values():
            print(command.__doc__)

    def usage(self) -> None:
        """/usage: what the next request counts, and how well that is known"""
        usage = self.session.usage(**self.to)
        print(f"{usage.mark}{usage} tokens ({usage.exactness}); with all thinking: {usage.raw}")

    def what_if(self) -> None:
        """/what-if: what every other policy would send"""
        print(self.session.what_if(**self.to))

    def set(self, key: str, value: Any) -> None:
        """/set KEY VALUE: a setting, from the next request on"""
        try:
            value = json.loads(value)  # true, false, a number
        except ValueError:
            pass  # a word
        self.session.settings.set(f"reasoning.{key}", value)

    def back(self) -> None:
        """/back: take the last turn back"""
        self.session.pop_turn()

    def command(self, line: str) -> None:
        name, *arguments = line.split()
        command = self.commands.get(name, self.help)
        try:
            command(*arguments)
        except TypeError:
            print(f"({command.__doc__})", file=sys.stderr)
        except rs.ReasoningStoreError as error:
            print(f"({error})", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--model", required=True)
    parser.add_argument("--provider", help="whose rules hold: deepseek, moonshot, vllm, ...")
    parser.add_argument("--db", default="sqlite:///chat.db")
    parser.add_argument("--session", default="terminal")
    given = parser.parse_args()
    with rs.Store(given.db) as store, OpenAI(max_retries=0) as client:
        session = store.session(given.session, create=True)
        for item in session.history(limit=6):
            print(f"{item.message.role}: {item.message.text}")
        chat = Chat(client, session, {"provider": given.provider, "model": given.model})
        while True:
            try:
                line = input("> " if sys.stdin.isatty() else "").strip()
            except (EOFError, KeyboardInterrupt):
                return
            if line.startswith("/"):
                chat.command(line)
            elif line:
                chat.say(line)


if __name__ == "__main__":
    main()
