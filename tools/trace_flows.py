"""Trace four flows: the functions that each enters, their modules, and the calls to a statement.

Run it in a checkout as ``python -m tools.trace_flows``; ``-v`` lists the modules in their order.
``docs/explanation/how-it-works.md`` draws the same flows.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai

import reasoning_store as rs
from reasoning_store.server.options import ServerOptions
from reasoning_store.testing import stream
from tests.docs.provider import Provider
from tests.server.serving import serving

PACKAGE = f"{Path(rs.__file__).parent}/"
TO: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-reasoner"}


class Trace:
    """The calls of our functions on all threads, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.stacks = threading.local()
        self.entered: list[tuple[str, str, int]] = []
        self.depths: list[int] = []

    def watch(self, frame: Any, event: str, argument: Any) -> None:
        if not self.on:
            return
        stack = self.stacks.__dict__.setdefault("names", [])
        if event == "call":
            name = frame.f_code.co_filename.removeprefix(PACKAGE)
            ours = not name.startswith(("/", "testing/", "<"))
            stack.append(ours)
            if ours:
                self.entered.append((name, frame.f_code.co_qualname, threading.get_ident()))
        elif event == "return" and stack:
            stack.pop()
        elif event == "c_call" and argument.__name__ == "execute" and True in stack:
            self.depths.append(sum(stack))

    def print(self, flow: str, run: Callable[[], object]) -> None:
        """Run a flow a second time, when every module is loaded, and print its figures."""
        run()
        self.entered, self.depths, self.stacks = [], [], threading.local()
        self.on = True
        run()
        time.sleep(0.3)  # a server ends its request after the client has the reply
        self.on = False
        modules = list(dict.fromkeys(name for name, _, _ in self.entered))
        functions = len({entry[:2] for entry in self.entered})
        depths = f"{min(self.depths)} to {max(self.depths)}"
        print(f"{flow:14}{functions:5} functions{len(modules):5} modules; frames to SQL: {depths}")
        if "-v" in sys.argv:
            print("   ", *modules)


def main() -> None:
    trace = Trace()
    threading.setprofile(trace.watch)
    sys.setprofile(trace.watch)
    reply = rs.assistant(rs.ThinkingBlock(thought="Seven times thirteen."), "No, 91 = 7 x 13.")
    with tempfile.TemporaryDirectory() as folder, Provider().listening() as provider:
        with rs.Store(f"sqlite:///{folder}/chat.db") as store:
            session = store.session("chat", create=True)
            session.append(rs.user("Is 91 prime?"))
            events = list(stream(reply, api="openai.chat", pieces=2, include_usage=False, **TO))
            request = session.build_request(**TO)
            trace.print("record", lambda: list(session.record(events, request=request)))
            session.append(rs.user("And 97?"))
            trace.print("build_request", lambda: session.build_request(**TO))
            trace.print("usage", lambda: session.usage(**TO))
        options = ServerOptions(upstream=f"{provider.address}/v1", provider="deepseek")
        with (
            rs.Store(f"sqlite:///{folder}/gateway.db") as store,
            serving(store, options) as address,
            openai.OpenAI(api_key="k", base_url=f"{address}/v1") as client,
        ):

            def ask(*texts: str) -> str:
                asked: Any = [
                    {"role": ("user", "assistant")[n % 2], "content": text}
                    for n, text in enumerate(texts)
                ]
                pieces = client.chat.completions.create(
                    model="deepseek-flash", messages=asked, stream=True
                )
                return "".join(
                    choice.delta.content or "" for piece in pieces for choice in piece.choices
                )

            questions = ["Is 91 prime?", "Is 97 prime?"]
            turns = iter([(first, ask(first), "Why?") for first in questions])
            trace.print("gateway", lambda: ask(*next(turns)))


if __name__ == "__main__":
    main()
