"""The bodies of Gemini's generateContent, as its clients send them.

A call may have no id: then it gets the same one here and in the stored reply, and a result without
an id answers the first open call of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.integrations.client_messages import ClientMessage, weave

API: Final = "gemini.generate_content"
_ADDRESS: Final = re.compile(r"/models/([^/:]+):(?:generate|streamGenerate)Content$")
_SEAL: Final = "thoughtSignature"


def model_in(path: str) -> str | None:
    """Return the model that a path names."""
    found = _ADDRESS.search(path)
    return None if found is None else found[1]


def host_of(address: str) -> str:
    """Return an address without the model and the verb."""
    return _ADDRESS.sub("", address)


def read_contents(contents: Sequence[Any]) -> Iterator[ClientMessage]:
    """Yield the messages of a body, thoughts included: they are stored where they are new."""
    calls: dict[str, list[str]] = {}
    for index, given in enumerate(contents):
        parts = _parts_of(given)
        if isinstance(given, Mapping) and given.get("role") == "model":
            blocks = _read_parts(parts, tags="auto")
            calls = {}
            for call in blocks:
                if isinstance(call, rs.ToolCallBlock):
                    calls.setdefault(call.name, []).append(call.id)
            thinks = any(part.get("thought") or part.get(_SEAL) for part in parts)
            yield ClientMessage(rs.assistant(*blocks), index, index, thinks)
        else:
            answers = [part["functionResponse"] for part in parts if _is_answer(part)]
            others = _read_parts([part for part in parts if not _is_answer(part)], tags="never")
            results = [_read_result(answer, calls) for answer in answers]
            role: Any = "tool" if results and not others else "user"
            plain = rs.Message(role=role, blocks=(*results, *others))
            yield ClientMessage(plain, index, index, False)


def _parts_of(content: Any) -> list[Any]:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    listed = parts if isinstance(parts, list) else []
    return [part for part in listed if isinstance(part, Mapping)]


def _is_answer(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("functionResponse"), Mapping)


def _read_parts(parts: Sequence[Any], *, tags: Any) -> tuple[rs.Block, ...]:
    body = {"candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}}]}
    return rs.normalize_response(body, api=API, tags=tags).blocks if parts else ()


def _read_result(answer: Mapping[str, Any], calls: Mapping[str, list[str]]) -> rs.ToolResponseBlock:
    id, name, result = answer.get("id"), str(answer.get("name") or ""), answer.get("response")
    is_error = False
    if isinstance(result, Mapping) and len(result) == 1:
        ((key, value),) = result.items()
        is_error = key == "error"
        result = value if key in ("result", "error") else dict(result)
    waiting = calls.get(name)
    if not isinstance(id, str) or not id:
        id = waiting.pop(0) if waiting else ""
    return rs.ToolResponseBlock(call_id=id, tool_name=name, result=result, is_error=is_error)


def restore_contents(parts: Sequence[Any], written: Sequence[Any]) -> list[Any]:
    """Return a reply with its thoughts, and with the signatures of its texts and calls."""
    (content,), made = parts, _parts_of(written[0])
    own = list(content.get("parts") or ())
    sealed = [part for part in made if not _is_thought(part)]
    if len(sealed) == len(own):
        own = [{**_seal_of(one), **part} for one, part in zip(sealed, own, strict=True)]
    return [{**content, "parts": weave(own, made, _is_thought)}]


def _is_thought(part: Mapping[str, Any]) -> bool:
    return part.get("thought") is True


def _seal_of(part: Mapping[str, Any]) -> dict[str, Any]:
    return {_SEAL: part[_SEAL]} if _SEAL in part else {}
