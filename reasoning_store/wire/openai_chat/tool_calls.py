"""Tool calls of Chat Completions, whole or in fragments.

A fragment names its call by an index, and the first one has the id and the name. Hosts get
this wrong in several ways: no index, -1, one index for all calls of a message, an id in every
fragment, no id at all. A new id together with a name begins a call; where there is no id, so
does another name, or arguments that begin anew where others have ended (Gemini's endpoint).
Every other fragment continues the call that it points at. Calls are numbered here, in the
order in which they begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reasoning_store.conversation.chunks import Chunk, ToolCallChunk
from reasoning_store.wire import call_ids
from reasoning_store.wire.event_fields import is_index, other_fields, shallow_dict

_LEGACY: Final = -1
"""The place of the one call of ``function_call``, from before there were several."""
_READ: Final = frozenset({"index", "id", "type", "function", "custom"})
_ORDINARY: Final = frozenset({None, "", "function"})
_NO_IDS: Final = frozenset({None, "", "null"})
"""Mistral's SDK writes the absence of an id as a word."""


@dataclass(slots=True)
class _Call:
    number: int
    id: str | None = None
    name: str | None = None
    ended: bool = False
    """Whether its arguments may be whole: they end as an object does."""


class Calls:
    """The calls of one choice. ``whole``: they do not come in fragments."""

    def __init__(self, choice: int, *, whole: bool) -> None:
        self.response_id: str | None = None
        self._choice = choice
        self._whole = whole
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def read(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """``tool_calls``: several calls, or fragments of several."""
        if not isinstance(value, list):
            wrong.append({name: value})
            return
        for raw in value:
            item = shallow_dict(raw)
            index = item.get("index") if isinstance(item, dict) else None
            # Z.AI numbers a call -1: a number that is none is an absent one.
            index = index if is_index(index) else None
            if not isinstance(item, dict) or not self._read_fragment(item, index, out):
                wrong.append({name: raw})

    def read_function_call(self, name: str, value: Any, out: list[Chunk], wrong: list[Any]) -> None:
        """``function_call``: one call, without an id; Snowflake's empty one is ignored."""
        if value == {"name": "", "arguments": ""}:
            return
        if not self._read_fragment({"function": value, "type": name}, _LEGACY, out):
            wrong.append({name: value})

    def _read_fragment(self, item: Mapping[str, Any], index: int | None, out: list[Chunk]) -> bool:
        """Add a fragment; return whether it has a call's form."""
        body = shallow_dict(item.get("function") or item.get("custom") or {})
        if not isinstance(body, dict):
            return False
        call_id, kind, name = item.get("id"), item.get("type"), body.get("name")
        arguments = body.get("input" if "input" in body else "arguments")
        if not (
            all(isinstance(text, str | None) for text in (call_id, kind, name))
            and isinstance(arguments, str | dict | list | None)
        ):
            return False
        call_id = None if call_id in _NO_IDS else call_id
        metadata = other_fields(item, _READ)
        if not (call_id or name or arguments or metadata):
            return not self._whole  # a fragment may be empty, a call may not
        if kind not in _ORDINARY:
            metadata["type"] = kind
        call = self._call_of_fragment(index, call_id, name, arguments)
        new_id = None if call.id else call_id
        new_name = None if call.name else name
        if new_name and not (call.id or new_id):
            # An answer needs an id; this one depends on the response alone.
            new_id = call_ids.make_call_id(self.response_id or "", self._choice, call.number)
        call.id, call.name = call.id or new_id, call.name or new_name
        if arguments and not (isinstance(arguments, str) and arguments.isspace()):
            call.ended = not isinstance(arguments, str) or arguments.rstrip().endswith("}")
        parameters = None if isinstance(arguments, str | None) else arguments
        text = arguments if isinstance(arguments, str) else ""
        if new_id or new_name or metadata or text or self._whole or parameters is not None:
            out.append(
                ToolCallChunk(
                    index=call.number,
                    id=new_id,
                    name=new_name or None,
                    arguments=text,
                    parameters=parameters,
                    is_complete=self._whole,
                    metadata=metadata or None,
                    choice=self._choice,
                )
            )
        return True

    def _call_of_fragment(
        self, index: int | None, call_id: str | None, name: str | None, arguments: Any
    ) -> _Call:
        """Return the call that a fragment belongs to, a new one where it begins one."""
        call: _Call | None = None
        if self._whole:
            pass
        elif index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = self._by_id.get(call_id)
        elif self._calls and not (name and self._calls[-1].name):
            call = self._calls[-1]
        named = call.id if call and call.id and not call_ids.is_made_here(call.id) else None
        if named and call_id and name and call_id != named:
            call = None
        elif call and name and call.name and not call_id:
            begins = not isinstance(arguments, str | None) or (arguments or "")[:1] == "{"
            if name != call.name or (call.ended and begins):
                call = None
        if call is None:
            call = _Call(len(self._calls))
            self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
        if call_id:
            self._by_id.setdefault(call_id, call)
        return call
