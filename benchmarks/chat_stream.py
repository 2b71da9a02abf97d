"""A whole Chat Completions stream: parsed, filtered, accumulated, a message at its end.

Every contender gets what the official SDK hands over, its chunk objects, where that SDK is
installed; plain dicts are a row of their own. A figure is one chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import reasoning_store as rs
from benchmarks.timing import timed_clean
from benchmarks.workload import Prepare, Sample, Setting

Run = Callable[[list[Any]], object]


def events(kind: str, count: int) -> list[dict[str, Any]]:
    """A stream of ``count`` small deltas of one kind, and its end."""
    about = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def event(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def word(n: int) -> str:
        return f"{n % 997:03} "  # the rival takes a repeated chunk for a model gone astray

    fields = {
        "text": lambda n: {"content": word(n)},
        "reasoning": lambda n: {"reasoning_content": word(n)},
        "tagged": lambda n: {"content": ("<think>", word(n), "</think>", word(n))[n % 4]},
    }
    return [*(event(fields[kind](n)) for n in range(count)), event({}, "stop")]


def chunks(kind: str, count: int) -> list[Any]:
    """The same as the SDK's objects, or as dicts where it is not installed."""
    stream = events(kind, count)
    if find_spec("openai") is None:
        return stream
    chunk = import_module("openai.types.chat").ChatCompletionChunk
    return [chunk.model_validate(event) for event in stream]


def driven(run: Run, kind: str, *, plain: bool = False) -> Prepare:
    """Return a contender that takes a whole stream; a figure is one chunk."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        stream = events(kind, setting.size) if plain else chunks(kind, setting.size)
        go = timed_clean(setting, lambda: run(stream))
        yield lambda: go() / len(stream)

    return prepare


def ours(stream: list[Any]) -> None:
    normalizer = rs.StreamNormalizer(provider="deepseek", api="openai.chat")
    feed = normalizer.feed
    for event in stream:
        feed(event)
    normalizer.finish()


def floor(stream: list[dict[str, Any]]) -> tuple[str, str]:
    """A loop over dicts that keeps the two fields that are in this stream."""
    said: list[str] = []
    thought: list[str] = []
    for event in stream:
        delta = event["choices"][0]["delta"]
        if text := delta.get("content"):
            said.append(text)
        if text := delta.get("reasoning_content"):
            thought.append(text)
    return "".join(said), "".join(thought)
