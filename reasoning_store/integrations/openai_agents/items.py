"""The items of a run as messages of the store, and the same items back.

A run of the model's items is one message: its reasoning, its text and its calls. Each message
has the form of its items (``foreign_forms``), so that they come back equal. A message that was
not read from items is written as its protocol sends it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.formats import CallLinks, RequestMessage, read_message, split_messages
from reasoning_store.integrations import foreign_forms

Item = dict[str, Any]

_NAME: Final = "openai_agents"
_API: Final = "openai.responses"
_OF_REASONING: Final = frozenset({"message", "function_call", "custom_tool_call"})
"""The types of items whose id the service takes only after the reasoning that led to them."""


def read_items(
    items: Sequence[Mapping[str, Any]],
    *,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
) -> list[rs.Message]:
    """Return items as messages; ``write_items`` gives them back.

    The names are those of the model that made the reasoning, where an item has none.
    """
    for place, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise rs.InvalidCall(
                f"items.{place}: a mapping, not {type(item).__name__}",
                hint="an item of the Responses API, as result.to_input_list() has them",
            )
    links = CallLinks()

    def read(one: RequestMessage) -> rs.Message:
        if one.role is None:
            return _raw_message(one.parts)
        message = read_message(one, links, provider=provider, model=model, base_url=base_url)
        return message if message.blocks else _raw_message(one.parts)

    return [_with_form(read(one), [*one.parts]) for one in split_messages(items, api=_API)]


def _with_form(message: rs.Message, items: list[Any]) -> rs.Message:
    origin = message.origin
    named = next(filter(None, map(_model_of, items)), None)
    if origin is not None and named is not None:
        origin = replace(origin, model=named)
    plain = replace(message, metadata=None, origin=origin)
    return foreign_forms.with_form(plain, _NAME, items, _is_reasoning)


def _raw_message(items: Sequence[Mapping[str, Any]]) -> rs.Message:
    """Return items without a meaning here as a message that stores them."""
    role = items[0].get("role")
    kept = [rs.RawBlock(data=dict(item)) for item in items]
    return rs.Message(role="user" if role == "user" else "assistant", blocks=tuple(kept))


def _model_of(item: Mapping[str, Any]) -> str | None:
    """Return the model that an item names as its maker, as those of Chat Completions do."""
    about = item.get("provider_data")
    named = about.get("model") if isinstance(about, Mapping) else None
    return named if isinstance(named, str) else None


def _is_reasoning(path: foreign_forms.Path, value: Any) -> bool:
    return len(path) == 1 and isinstance(value, Mapping) and value.get("type") == "reasoning"


def write_items(message: rs.Message, *, withheld: Collection[int] = ()) -> list[Item]:
    """Return the items of a message, equal to those that it was read from.

    ``withheld`` are the indexes of thinking blocks to leave out. If reasoning is left out, or was
    erased, the items that it led to have no id: the service refuses such an id without the
    reasoning before it.
    """
    if message.status == "erased":
        return []
    rebuilt = foreign_forms.rebuild(message, _NAME, withheld=withheld)
    if rebuilt is None:
        kept = [block for n, block in enumerate(message.blocks) if n not in withheld]
        return rs.write_message(replace(message, blocks=tuple(kept)), api=_API)
    return list(_with_bound_ids(rebuilt))


def _with_bound_ids(rebuilt: foreign_forms.Rebuilt) -> Iterator[Item]:
    """Yield the items that are left, without ids where the reasoning before them is not."""
    left: Iterator[Item] = iter(rebuilt.form)
    is_bound = False
    for place in range(len(rebuilt.form) + len(rebuilt.left_out)):
        if place in rebuilt.left_out:
            is_bound = True
            continue
        item = next(left)
        if item.get("type") == "reasoning":
            is_bound = False
        yield _without_id(item) if is_bound else item


def _without_id(item: Item) -> Item:
    """Return an item without an id that names reasoning; a message then is a role and a text."""
    kind, content = item.get("type", "message"), item.get("content")
    if kind not in _OF_REASONING or "id" not in item:
        return item
    if kind == "message" and isinstance(content, list):
        texts = [part.get("text") or part.get("refusal") or "" for part in content]
        about: Item = {name: item[name] for name in ("type", "role", "phase") if name in item}
        return {**about, "content": "".join(texts)}
    return {name: value for name, value in item.items() if name != "id"}
