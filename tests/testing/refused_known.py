"""The refusals that people have met, by the pattern of their text."""

from __future__ import annotations

from tests.testing.bodies import (
    DETAILS,
    FRAGMENTS,
    MANUAL,
    V4,
    Case,
    M,
    case,
    chat,
    contents,
    drop,
    insert,
    items,
    messages,
    put,
    remembered,
    remembered_items,
    thought,
)

R = "input"

KNOWN: dict[str, Case] = {
    "of type 'reasoning' was provided without its required following item": case(
        "rs_1", "openai", items(), insert(R, 2, {"role": "user", "content": "x"})
    ),
    "was provided without its required 'reasoning' item": case(
        "'rs_1'", "openai", items(), drop(R, 1), record=remembered_items()
    ),
    "Items are not persisted when `store` is set to false": case(
        "rs_1", "openai", items(), drop(R, 1, "encrypted_content")
    ),
    "invalid_encrypted_content": case(
        "rs_1", "openai", items(), put(R, 1, "encrypted_content", "RU5DUkVEQUNURUQ=")
    ),
    "The block is bound to a different conversation": case(
        "messages.1.content.0",
        "anthropic",
        messages("claude-opus-5-5"),
        put("system", "Be brief."),
        record=remembered(messages("claude-opus-5-5")),
    ),
    "Invalid `signature` in `thinking` block": case(
        "messages.1.content.0",
        "anthropic",
        messages("claude-opus-5"),
        put(M, 1, "content", 0, "signature", "not base 64"),
    ),
    "Expected `thinking` or `redacted_thinking`, but found": Case(
        "`tool_use`",
        "anthropic",
        messages("claude-sonnet-4-5", think=False, **MANUAL),
        messages("claude-sonnet-4-5", **MANUAL),
    ),
    "When thinking is disabled, an `assistant` message": Case(
        "messages.1.content.0",
        "anthropic",
        messages("claude-sonnet-4-5"),
        messages("claude-sonnet-4-5", think=False),
    ),
    '"thinking.type.disabled" is not supported for this model': case(
        "disabled",
        "anthropic",
        messages("claude-opus-5-5", think=False),
        put("thinking", {"type": "disabled"}),
    ),
    '"thinking.type.enabled" is not supported for this model': Case(
        "enabled",
        "anthropic",
        messages("claude-opus-4-8", **MANUAL),
        messages("claude-opus-4-8", thinking={"type": "adaptive"}),
    ),
    "The `reasoning_content` in the thinking mode must be passed back to the API": Case(
        "thinking mode", "deepseek", chat(V4), chat(V4, reply={"reasoning_content": ""})
    ),
    "Missing `reasoning_content` field in the assistant message at message index": Case(
        "index 1",
        "deepseek",
        chat("deepseek-reasoner"),
        chat("deepseek-reasoner", reply=thought()),
    ),
    "reasoning_content is missing in assistant tool call message at index": Case(
        "index 1", "moonshot", chat("kimi-k2.6"), chat("kimi-k2.6", reply=thought())
    ),
    "is missing a thought_signature": Case(
        "functionCall", "google", contents(signature=None), contents(), model="gemini-3-pro"
    ),
    "Corrupted thought signature|Invalid thought signature|Thought signature is not valid": Case(
        "signature",
        "google",
        contents(signature="!"),
        contents(signature="skip_thought_signature_validator"),
        model="gemini-3-pro",
    ),
    "reasoning_details": Case(
        "reasoning_details.1",
        "openrouter",
        chat("deepseek/deepseek-v4", reply={"reasoning_details": FRAGMENTS}),
        chat("deepseek/deepseek-v4", reply={"reasoning_details": DETAILS}),
    ),
    "requires adaptive thinking": case(
        "2013",
        "minimax",
        chat("MiniMax-M3.1-Flash", thinking={"type": "adaptive"}),
        put("thinking", {"type": "disabled"}),
    ),
}
