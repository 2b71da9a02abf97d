"""A conversation as a browser follows it: events, each with the place behind it.

A place is where a reader stands: at a position, in one of its blocks, behind so many
characters. A message that is still arriving grows only at its end, whoever reads it and from
which process, so what is new for a reader is whatever lies behind its place, and the events of
any number of connections join to the whole, without a gap or a repeat.

Pure: it knows messages, and neither a store nor HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import reasoning_store as rs


class Place(NamedTuple):
    """Where a reader stands."""

    position: int
    block: int = 0
    characters: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Place:
        position, block, characters = map(int, text.split("."))
        return cls(position, block, characters)


@dataclass(frozen=True, slots=True)
class Event:
    """Something new, and the place behind it."""

    name: str
    data: dict[str, Any]
    place: Place

    def __str__(self) -> str:
        """Return the event as the server sends it."""
        return f"id: {self.place}\nevent: {self.name}\ndata: {json.dumps(self.data)}\n\n"


def news(message: rs.Message, place: Place, *, thinking: bool) -> Iterator[Event]:
    """Yield what of a reply lies behind a place; last, if it is whole, that it is over."""
    if message.role == "user":
        yield Event("done", {"status": "complete", "position": place.position - 1}, place)
        return  # another turn has begun
    arriving = message.status == "streaming"
    for number, block in enumerate(message.blocks[place.block :], place.block):
        start = place.characters if number == place.block else 0
        match block:
            case rs.TextBlock(text=text):
                name, shown = "text", True
            case rs.ThinkingBlock(thought=text, is_hidden=hidden):
                name, shown = "thinking", thinking and not hidden
            case rs.ToolCallBlock(name=tool) if message.role == "assistant":
                if arriving and number == len(message.blocks) - 1:
                    return  # its arguments may still be growing
                yield Event("call", {"name": tool}, Place(place.position, number + 1))
                continue
            case _:
                continue
        if shown and text[start:]:
            behind = Place(place.position, number, len(text))
            yield Event(name, {"text": text[start:]}, behind)
    if not arriving:
        is_last = message.role == "assistant" and not message.tool_calls
        over = is_last or message.status == "interrupted"
        done = {"status": message.status, "position": place.position}
        yield Event("done" if over else "next", done, Place(place.position + 1))
