"""What a whole Chat Completions chunk costs: parsed, filtered and accumulated.

    python benchmarks/chat_stream.py             our own rows
    python benchmarks/chat_stream.py --rivals    LiteLLM beside ours, taking turns

A row is one stream of small deltas driven from the first to the last, the message built at
the end. Both sides get the official SDK's chunk objects, which is what an application
hands over; our own rows for plain dicts stand beside. The figure is the best of the rounds
in microseconds a chunk. Compare figures of one run only.

The rival's wrapper turns each chunk into its own response object; its accumulation over
the finished list (``stream_chunk_builder``) is part of its row, as ours is of ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import reasoning_store as rs

Run = Callable[[list[Any]], None]


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


def sdk_objects(stream: list[dict[str, Any]]) -> list[Any]:
    chunk = import_module("openai.types.chat").ChatCompletionChunk
    return [chunk.model_validate(event) for event in stream]


def ours(stream: list[Any]) -> None:
    normalizer = rs.StreamNormalizer(provider="deepseek", api="openai.chat")
    feed = normalizer.feed
    for event in stream:
        feed(event)
    normalizer.finish()


def litellm(stream: list[Any]) -> None:
    module = import_module("litellm")
    logging = import_module("litellm.litellm_core_utils.litellm_logging").Logging
    wrapper = module.CustomStreamWrapper(
        completion_stream=iter(stream),
        model="m",
        custom_llm_provider="openai",
        logging_obj=logging(
            model="m",
            messages=[],
            stream=True,
            call_type="completion",
            start_time=time.time(),
            litellm_call_id="1",
            function_id="1",
        ),
    )
    module.stream_chunk_builder(list(wrapper))


def best(runs: list[tuple[Run, list[Any]]], rounds: int) -> list[float]:
    """The best time of each, taking turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for place, (run, stream) in enumerate(runs):
            start = time.perf_counter()
            run(stream)
            times[place].append(time.perf_counter() - start)
    return [min(column) for column in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", action="store_true", help="needs litellm")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--chunks", type=int, default=4000)
    arguments = parser.parse_args()
    for kind in ("text", "reasoning", "tagged"):
        plain = events(kind, arguments.chunks)
        runs: list[tuple[Run, list[Any]]] = [(ours, plain)]
        names = ["ours, dicts"]
        if arguments.rivals:
            objects = sdk_objects(plain)
            runs += [(ours, objects), (litellm, objects)]
            names += ["ours, SDK objects", "litellm"]
        times = best(runs, arguments.rounds)
        cells = [
            f"{name} {seconds / len(plain) * 1e6:7.2f} us"
            for name, seconds in zip(names, times, strict=True)
        ]
        ratio = f"   ratio {times[1] / times[2]:.2f}" if arguments.rivals else ""
        print(f"{kind:10}", "   ".join(cells) + ratio)


if __name__ == "__main__":
    main()
