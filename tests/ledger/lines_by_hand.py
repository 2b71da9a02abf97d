"""Lines of an import as a person writes them."""

from __future__ import annotations

import json
from typing import Any

SAID = {"type": "message", "message": {"role": "user", "blocks": []}, "counts": {}}
SUMMED = {
    "type": "compaction",
    "branch": 1,
    "number": 1,
    "first": 1,
    "last": 2,
    "message": {"role": "user", "blocks": [{"type": "text", "text": "secret"}]},
    "counts": {},
}
CLEARED = {"type": "compaction", "branch": 1, "number": 1, "first": 1, "last": 2, "clears": True}
ASKED = {**SAID, "message": SUMMED["message"]}
REPLIED = {"type": "message", "message": {"role": "assistant", "blocks": []}, "counts": {}}


def lines_with(*changed: Any) -> list[str]:
    """A session with these lines; its end is theirs to write."""
    head = [
        {"type": "reasoning-store", "version": 2},
        {"type": "session", "id": "s", "encoding": "x"},
    ]
    return [json.dumps(line) for line in [*head, *changed]]
