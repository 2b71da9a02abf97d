"""What the tag filter costs, alone or beside a rival.

    python benchmarks/tags.py             our own rows, then the hostile inputs
    python benchmarks/tags.py --rivals    pydantic-ai-slim beside ours, taking turns

A row is one workload: the same deltas, driven from the first to the last, each piece of
text kept in a list, as an accumulator would. The figure is the best of the rounds in
microseconds a delta; MB/s counts characters. Compare figures of one run only.

The rival compares each delta with the tag and does not look inside one, so every tag is a
delta of its own in all rows; we look inside every delta all the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reasoning_store.ingress.tags import TagFilter

Drive = Callable[[list[str]], None]
KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named text in the pieces in which it is streamed."""

    name: str
    deltas: list[str]

    @property
    def size(self) -> int:
        return sum(map(len, self.deltas))


def mixed(size: int, paragraph: int) -> Iterator[str]:
    """Prose in paragraphs of equal length, every second one a thought, some of it ``<``."""
    chance = random.Random(1)
    words = ["so", "we", "try", "seven", "times", "thirteen", "and", "find", "ninety", "one"]
    given = 0
    thought = False
    while given < size:
        body = " ".join(chance.choices([*words, "a", "x"], k=paragraph // 3))
        body = body.replace(" a x ", " a < x ")[:paragraph]
        yield from ("<think>", body, "</think>") if thought else (body,)
        thought = not thought
        given += len(body)


def pieces(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def workloads() -> list[Workload]:
    """The rows of the table: small deltas and large ones, from short texts to long ones."""
    rows = [(4, 16), (4, 64), (4, 256), (4, 2048), (4 * KIB, 256), (4 * KIB, 2048)]
    return [
        Workload(
            name=f"{length}-character deltas, {kib} K",
            deltas=[
                piece
                for part in mixed(kib * KIB, max(length, 1500))
                for piece in pieces(part, length)
            ],
        )
        for length, kib in rows
    ]


def anywhere() -> list[Workload]:
    """The same prose, cut without a look at where the tags are."""
    return [
        Workload(
            name=f"{length}-character deltas, cut anywhere",
            deltas=pieces("".join(mixed(2048 * KIB, 1500)), length),
        )
        for length in (4, 4 * KIB)
    ]


def hostile() -> list[Workload]:
    """Texts that make a careless filter hold without bound or look twice."""
    texts = {
        "<": "<" * 20_000,
        "<think>": "<think>" * 3_000,
        "<thin": "<thin" * 4_000,
        "<think></think>": "<think></think>" * 1_400,
        "</think>": "</think>" * 2_500,
        "< and 16 spaces": ("<" + " " * 16) * 1_200,
        "< and 20,000 spaces": "<" + " " * 20_000,
        "halves, all the first before all the second": "<thi" * 2_500 + "nk>" * 2_500,
        "halves around a block": "<thi<think></think>nk>" * 900,
    }
    return [
        Workload(name=f"{name}, in pieces of {length}", deltas=pieces(text, length))
        for name, text in texts.items()
        for length in (1, 4, 64, len(text))
    ]


def ours() -> Drive:
    tag_filter = TagFilter()
    kept: list[str] = []

    def drive(deltas: list[str]) -> None:
        feed = tag_filter.feed
        keep = kept.append
        for delta in deltas:
            for run in feed(delta):
                keep(run.text)
        tag_filter.finish()

    return drive


def pydantic_ai() -> Drive:
    parts_manager = import_module("pydantic_ai._parts_manager").ModelResponsePartsManager
    parameters = import_module("pydantic_ai.models").ModelRequestParameters
    manager = parts_manager(model_request_parameters=parameters())

    def drive(deltas: list[str]) -> None:
        handle = manager.handle_text_delta
        for delta in deltas:
            for _ in handle(
                vendor_part_id="content", content=delta, thinking_tags=("<think>", "</think>")
            ):
                pass
        manager.get_parts()

    return drive


def run(filter_factory: Callable[[], Drive], deltas: list[str]) -> float:
    """Seconds for one pass over the deltas with a fresh filter."""
    drive = filter_factory()
    start = time.perf_counter()
    drive(deltas)
    return time.perf_counter() - start


def best(factories: list[Callable[[], Drive]], deltas: list[str], rounds: int) -> list[float]:
    """The best time of each, the factories taking turns."""
    times = [[run(factory, deltas) for factory in factories] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rivals", action="store_true", help="needs pydantic-ai-slim")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    factories: list[Callable[[], Drive]] = [ours, *([pydantic_ai] if arguments.rivals else [])]
    for work in [*workloads(), *([] if arguments.rivals else anywhere())]:
        times = best(factories, work.deltas, arguments.rounds)
        cells = [
            f"{factory.__name__} {seconds / len(work.deltas) * 1e6:8.3f} us"
            f" {work.size / seconds / 1e6:8.1f} MB/s"
            for factory, seconds in zip(factories, times, strict=True)
        ]
        ratio = f"   ratio {times[0] / times[1]:.2f}" if len(times) > 1 else ""
        print(f"{work.name:38}", "   ".join(cells) + ratio)
    if not arguments.rivals:
        for work in hostile():
            (seconds,) = best([ours], work.deltas, 3)
            print(f"{work.name:64} {seconds * 1e3:8.2f} ms for {work.size} characters")


if __name__ == "__main__":
    main()
