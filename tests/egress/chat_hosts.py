"""What the hosts of Chat Completions and its kin get, seen from outside.

``observed`` asks for requests to one host and says in a few words what is in them.
``chat_host_table`` says what has to be there.
"""

from __future__ import annotations

import json
from typing import Any

import reasoning_store as rs

Host = tuple[str | None, str, str]
"""Provider, model, api."""

SOURCES = (
    "reasoning",
    "reasoning_content",
    "reasoning_text",
    "reasoning_details",
    "think_tags",
    "tool_plan",
)
"""Fields from which a thought may have come."""

SEALERS = {
    "openrouter": (
        "anthropic/claude-opus-5",
        "google/gemini-3-pro",
        "google/gemini-2.5-pro",
        "openai/gpt-5.6",
        "x-ai/grok-5",
        "deepseek/deepseek-v4",
        "qwen/qwen4-max",
    ),
    "litellm": ("anthropic/claude-opus-5", "gemini/gemini-3-pro", "xai/grok-5"),
    "github-copilot": ("claude-opus-5", "gemini-3-pro", "gpt-5.6"),
}
"""Hosts of several makers' models, which cannot read each other's seals."""


def _where(message: dict[str, Any], text: str) -> str:
    """Return where in a message a thought is."""
    for name, value in message.items():
        if name == "content" and isinstance(value, str) and text in value:
            return value.replace(text, "*").replace("\n", "/")
        if name not in ("role", "tool_calls") and text in str(value):
            return name
    return "nowhere"


def _beside(request: rs.Request) -> dict[str, Any]:
    """Return what a body says next to the conversation."""
    bare = {"model", "messages", "stream", "tools"}
    return {name: value for name, value in request.body.items() if name not in bare}


def _said(host: Host, **settings: Any) -> dict[str, Any]:
    return _beside(_sent(host, rs.user("Hi"), **settings))


def _with_tools(host: Host) -> dict[str, Any]:
    """What the body says with a tool of an effort, where that is not what it says without."""
    provider, model, api = host
    request = rs.build_request(
        [rs.user("Hi")],
        settings={"reasoning.effort": "low"},
        tools=[{"name": "f"}],
        provider=provider,
        model=model,
        api=api,
    )
    return _other_than(_said(host, effort="low"), _beside(request))


def _other_than(expected: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    return {} if said == expected else said


def _in_its_own_word(host: Host, effort: str) -> dict[str, Any]:
    """What the body says of low effort, with the word of another in its place."""
    said: dict[str, Any] = json.loads(json.dumps(_said(host, effort="low")).replace("low", effort))
    return said


def _call(id: str = "callcall1") -> rs.ToolCallBlock:
    return rs.ToolCallBlock(id=id, name="f", parameters={}, arguments="{}")


def _sent(host: Host, *messages: rs.Message, **settings: Any) -> rs.Request:
    provider, model, api = host
    return rs.build_request(
        messages,
        settings={f"reasoning.{name}": value for name, value in settings.items()},
        provider=provider,
        model=model,
        api=api,
    )


def _answered() -> rs.Message:
    return rs.tool(rs.ToolResponseBlock(call_id="callcall1", tool_name="f", result="x"))


def _with_closed_thought(host: Host, thought: rs.ThinkingBlock) -> rs.Request:
    provider, model, api = host
    reply = rs.assistant(thought, "So", origin=rs.Origin(provider=provider, model=model, api=api))
    return _sent(host, rs.user("a"), reply, rs.user("b"), includeInContext=True)


def back_at(host: Host, source: str | None, seal: str | None = None) -> str:
    """Where a thought of the host's own is put that came from a field, or its seal."""
    thought = rs.ThinkingBlock(thought="Hm", source_field=source, encrypted=seal)
    return _where(_with_closed_thought(host, thought).body["messages"][1], seal or "Hm")


def demanded(host: Host, seal: str | None = None) -> str:
    """Which thoughts are sent though no setting asks for it, oldest first."""
    provider, model, api = host

    def reply(name: str, *said: rs.Block | str) -> rs.Message:
        thought = rs.ThinkingBlock(thought=name, signature=seal)
        return rs.assistant(
            thought, *said, origin=rs.Origin(provider=provider, model=model, api=api)
        )

    history = (
        rs.user("a"),
        reply("closed_call", _call()),
        _answered(),
        reply("closed_end", "So"),
        rs.user("b"),
        reply("open_call", _call()),
        _answered(),
        reply("open_end", "Well"),
        rs.tool(rs.ToolResponseBlock(call_id="none")),
    )
    kept = [verdict.message for verdict in _sent(host, *history).verdicts if verdict.kept]
    names = {1: "closed_call", 3: "closed_end", 5: "open_call", 7: "open_end"}
    return " ".join(names[place] for place in kept)


def filled(host: Host) -> list[dict[str, Any]]:
    """What the host gets next to text and calls where another model called, without a thought."""
    other = rs.Origin(provider="openai", api="openai.chat", model="gpt-5.6")
    reply = rs.assistant(_call(), origin=other)
    said = rs.assistant("So", origin=other)
    request = _sent(
        host, rs.user("a"), reply, _answered(), said, rs.user("b"), reply, _answered(), said
    )
    out = []
    for message in request.body["messages"]:
        if message["role"] == "assistant":
            rest = {name: value for name, value in message.items() if name not in _PLAIN}
            calls = [
                {name: value for name, value in call.items() if name not in _PLAIN}
                for call in message.get("tool_calls", ())
            ]
            out.append(rest | ({"calls": calls} if any(calls) else {}))
    return out if any(out) else []


_PLAIN = ("role", "content", "tool_calls", "id", "type", "function")


def _images_left_out(host: Host) -> str:
    image = rs.MediaBlock(kind="image", mime_type="image/png", data=b"x")
    codes = [warning.code for warning in _sent(host, rs.user("a", image)).warnings]
    return "left out" if "media_left_out" in codes else ""


def reads(host: Host) -> str:
    """Whose sealed thoughts a host of several makers is sent."""
    provider, _, api = host
    source = {"litellm": "thinking_blocks", "github-copilot": "reasoning_text"}.get(
        provider or "", "reasoning_details"
    )
    out = []
    for model in SEALERS.get(provider or "", ()):
        origin = rs.Origin(provider=provider, model=model, api=api)
        sealed = rs.ThinkingBlock(thought="Hm", source_field=source, signature="c2ln")
        sent = _sent(host, rs.assistant(sealed, "So", origin=origin), includeInContext=True)
        if sent.verdicts[0].kept:
            out.append(model)
    return " ".join(out)


def observed(host: Host) -> dict[str, Any]:
    """Return all that is asked of one host, without what is empty."""
    thought = back_at(host, None)
    back = {source: back_at(host, source) for source in SOURCES}
    facts = {
        "thought": thought,
        "back": {source: place for source, place in back.items() if place != thought},
        "seal": back_at(host, None, seal="RU5D"),
        "demanded": demanded(host) or demanded(host, seal="c2ln"),
        "filled": filled(host),
        "reads": reads(host),
        "on": _said(host, enabled=True),
        "off": _said(host, enabled=False),
        "minimal": _other_than(_said(host, effort="low"), _said(host, effort="minimal")),
        "low": _said(host, effort="low"),
        "medium": _other_than(_in_its_own_word(host, "medium"), _said(host, effort="medium")),
        "max": _said(host, effort="max"),
        "tools": _with_tools(host),
        "budget": _said(host, budgetTokens=2048),
        "images": _images_left_out(host),
        "kept": _beside(_with_closed_thought(host, rs.ThinkingBlock(thought="Hm"))),
    }
    return {name: value for name, value in facts.items() if value and value != "nowhere"}
