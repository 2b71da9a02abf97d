"""A request as a command of curl, with the key and an unknown address as shell variables."""

from __future__ import annotations

import json
import shlex
from typing import Final, NamedTuple
from urllib.parse import quote

from reasoning_store import Request


class _Call(NamedTuple):
    path: str
    headers: tuple[str, ...]


_BEARER: Final = "Authorization: Bearer $API_KEY"
_CALLS: Final = {
    "openai.chat": _Call("/chat/completions", (_BEARER,)),
    "openai.responses": _Call("/responses", (_BEARER,)),
    "anthropic.messages": _Call(
        "/v1/messages", ("x-api-key: $API_KEY", "anthropic-version: 2023-06-01")
    ),
    "gemini.generate_content": _Call(
        "/models/{model}:generateContent", ("x-goog-api-key: $API_KEY",)
    ),
    "mistral.chat": _Call("/chat/completions", (_BEARER,)),
    "cohere.chat": _Call("/v2/chat", (_BEARER,)),
    "ollama.chat": _Call("/api/chat", ()),
    "bedrock.converse": _Call("/model/{model}/converse", (_BEARER,)),
}
"""The path of each protocol after the base URL that its SDK takes, and its own headers."""


def curl_command(request: Request) -> str | None:
    """Return the command; None for a protocol that no provider has an address for."""
    to = request.target
    call = _CALLS.get(to.api or "")
    if call is None:
        return None
    needs = [] if to.base_url else ['BASE_URL="https://..."']
    if call.headers:
        needs.append('API_KEY="..."')
    path = call.path.format(model=quote(to.model or "MODEL", safe=""))
    base = (to.base_url or "").rstrip("/")
    if base.endswith("/v1"):
        path = path.removeprefix("/v1")
    lines = [
        f"curl {shlex.quote(base + path)}" if base else f'curl "$BASE_URL{path}"',
        *(f'  -H "{header}"' for header in (*call.headers, "Content-Type: application/json")),
        "  --data-binary @- <<'JSON'",
    ]
    body = json.dumps(request.body, ensure_ascii=False, indent=2)
    return "\n".join([*needs, " \\\n".join(lines), body, "JSON"])
