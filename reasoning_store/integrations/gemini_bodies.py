"""The addresses and replies of Gemini's generateContent, as its clients send them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reasoning_store.integrations.client_messages import weave

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


def _parts_of(content: Any) -> list[Any]:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    listed = parts if isinstance(parts, list) else []
    return [part for part in listed if isinstance(part, Mapping)]


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
