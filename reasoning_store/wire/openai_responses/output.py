"""The output item that an event of a Responses stream is about.

Events name an item by ``item_id`` and ``output_index``. Some gateways give every event an id
of its own (GitHub Copilot), others number all items alike (LiteLLM), and small servers name
nothing. So an item is looked up by id and, failing that, by index, among the open items of its
own kind: an event under the name of an item that is done belongs to another.

A thought comes before the items it led to (EC-006). If the first item that arrives is not the first
of the response, each place before it is reserved for a thought, which the last event fills in; one
that stays empty is no block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.chunks import Chunk
from reasoning_store.wire.event_fields import optional_index_field, optional_string_field
from reasoning_store.wire.openai_responses.items import Item

Address: TypeAlias = tuple[str | None, int | None]

_KEPT_PLACES: Final = 8
"""How many items that were not seen are given a place before the first that was."""


def address(event: Mapping[str, Any]) -> Address:
    """Return the names under which an event speaks of its item."""
    return optional_string_field(event, "item_id"), optional_index_field(event, "output_index")


class Output:
    """The items of one response, in the order in which they were first spoken of."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._items: list[Item] = []
        self._by_id: dict[tuple[str, str], Item] = {}
        self._by_place: dict[tuple[int | None, str], Item] = {}
        self._kept: dict[int, Item] = {}
        self._starts: list[Chunk] = []
        self._places = 0
        self._units = 0

    def find(self, kind: str, names: Address) -> Item | None:
        """Return the open item of this kind that is meant."""
        item = self.find_item(kind, names[0])
        if item is None or item.done:
            item = self._by_place.get((names[1], kind))
        return item if item is not None and not item.done else None

    def find_item(self, kind: str, item_id: str | None) -> Item | None:
        """Return the last item of this id and kind, done or not."""
        return self._by_id.get((item_id, kind)) if item_id else None

    def was_done(self, kind: str, names: Address) -> bool:
        """Whether the values under these names were repeated before with their item."""
        known = (self.find_item(kind, names[0]), self._by_place.get((names[1], kind)))
        return any(item is not None and item.done for item in known)

    def open(self, kind: str, names: Address) -> Item:
        """Return the open item that is meant, or begin it."""
        return self.find(kind, names) or self.begin(kind, names)

    def begin(self, kind: str, names: Address) -> Item:
        item_id, place = names
        kept = self._kept.pop(place, None) if place is not None else None
        if kept is not None and kind == kept.kind:
            item = kept
            item.id = item_id
        else:
            if place is not None:
                self._keep_places(place)
            item = Item(kind, self.unit(), item_id, self._provider)
        self._items.append(item)
        self._by_place[place, kind] = item
        if item_id:
            self._by_id[item_id, kind] = item
        return item

    def unit(self) -> int:
        """Return a number for another block."""
        self._units += 1
        return self._units - 1

    def starts(self) -> list[Chunk]:
        """Return, once, the beginnings of the thoughts that keep a place."""
        starts, self._starts = self._starts, []
        return starts

    def match_items(self, listed: Mapping[int, Mapping[str, Any]]) -> dict[int, Item]:
        """Return which item each of a response's list repeats: by id, by place, or in order.

        Order among items of a kind is the last resort: some servers make new ids for the
        list, and number the items of the stream in a way of their own.
        """
        self._places = max(self._places, *listed, 0)
        item_at: dict[int, Item] = {}
        taken: set[int] = set()

        def take(place: int, item: Item | None) -> None:
            if item is not None and place not in item_at and id(item) not in taken:
                item_at[place] = item
                taken.add(id(item))

        for place, data in listed.items():
            take(place, self.find_item(data["type"], data.get("id")))
        for place, data in listed.items():
            take(place, self._by_place.get((place, data["type"])))
        left: dict[str, list[Item]] = {}
        for item in reversed(self._items):
            if id(item) not in taken:
                left.setdefault(item.kind, []).append(item)
        for place, data in listed.items():
            if place not in item_at and left.get(data["type"]):
                take(place, left[data["type"]].pop())
        return item_at

    def _keep_places(self, place: int) -> None:
        for missed in range(max(self._places, place - _KEPT_PLACES), place):
            item = self._kept[missed] = Item("reasoning", self.unit(), None, self._provider)
            self._starts += item.start()
        self._places = max(self._places, place + 1)
