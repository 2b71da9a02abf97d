"""What hosts of Chat Completions refuse, each next to its mended twin."""

from __future__ import annotations

from tests.testing.bodies import (
    DETAILS,
    SIGNATURE,
    TOOLS,
    V4,
    Case,
    M,
    case,
    chat,
    closed,
    drop,
    edited,
    put,
    thought,
)

KIMI = chat("kimi-k2.6", reply=thought())
GPT = chat("gpt-5.6")
ROUTED = chat("anthropic/claude-sonnet-4.5", reply={"reasoning_details": DETAILS})

CHAT: tuple[Case, ...] = (
    case(
        "'xhigh' is not supported",
        "xai",
        chat("grok-4.5", reasoning_effort="high"),
        put("reasoning_effort", "xhigh"),
    ),
    # Chat Completions
    case("non-empty array", "openai", GPT, put(M, [])),
    case("'agent'", "openai", GPT, put(M, 0, "role", "agent")),
    case("got null", "openai", closed(GPT), put(M, 3, "content", None)),
    case("array of parts", "openai", GPT, put(M, 0, "content", [])),
    case("content[0].type", "openai", GPT, put(M, 0, "content", [{"type": "thought"}])),
    case(
        "minimum length 1",
        "openai",
        chat("gpt-5.6", reply={"content": "So."}),
        put(M, 1, "tool_calls", []),
    ),
    case("function.name", "openai", GPT, put(M, 1, "tool_calls", 0, "function", "name", "a b")),
    case(
        "function.arguments", "openai", GPT, put(M, 1, "tool_calls", 0, "function", "arguments", {})
    ),
    case("tool_call_id", "openai", GPT, drop(M, 2, "tool_call_id")),
    case(
        "tools[0]", "openai", chat("gpt-5.2", tools=TOOLS), put("tools", [{"name": "get_weather"}])
    ),
    case("did not have response messages: call_1", "openai", GPT, drop(M, 2)),
    case("did not have response messages", "openai", closed(GPT), drop(M, 2)),
    case("must be a response to", "openai", closed(GPT), drop(M, 1)),
    case("reasoning_content", "openai", GPT, put(M, 1, "reasoning_content", "Plan.")),
    case("'thinking'", "azure", GPT, put("thinking", {"type": "enabled"})),
    case("maximum length 40", "openai", GPT, lambda body: body.update(chat("m", calls="c" * 41))),
    case("reasoning_effort", "openai", GPT, put("reasoning_effort", "ultra")),
    case(
        "Unrecognized request argument supplied: reasoning_effort",
        "azure",
        chat("gpt-4o"),
        put("reasoning_effort", "low"),
    ),
    case(
        "'none' is not supported with the 'gpt-5.1-codex' model",
        "openai",
        chat("gpt-5.1-codex"),
        put("reasoning_effort", "none"),
    ),
    case(
        "Function tools with reasoning_effort",
        "openai",
        chat("gpt-5.4", tools=TOOLS, reasoning_effort="none"),
        put("reasoning_effort", "low"),
    ),
    case(
        "Function tools with reasoning_effort",
        "openai",
        chat("gpt-5.6", tools=TOOLS, reasoning_effort="none"),
        drop("reasoning_effort"),
    ),
    case("parse the JSON", "openai", GPT, put(M, 0, "content", "\ud800")),
    case("parse the JSON", "openai", GPT, put("metadata", b"bytes")),
    # DeepSeek
    case(
        "reasoning_content",
        "deepseek",
        closed(chat(V4, reply=thought())),
        drop(M, 1, "reasoning_content"),
    ),
    case("not allowed", "deepseek", chat("deepseek-r1"), put(M, 1, "reasoning_content", "Plan.")),
    case(
        "unknown variant `image_url`",
        "deepseek",
        chat("deepseek-chat", reply=thought()),
        put(M, 0, "content", [{"type": "image_url", "image_url": {"url": "data:,x"}}]),
    ),
    case("tool_choice", "deepseek", chat(V4, reply=thought()), put("tool_choice", "required")),
    case(
        "thinking.type",
        "deepseek",
        chat(V4, reply=thought()),
        put("thinking", {"type": "adaptive"}),
    ),
    case(
        "reasoning_effort", "deepseek", chat(V4, reply=thought()), put("reasoning_effort", "none")
    ),
    case(
        "content or tool_calls",
        "deepseek",
        closed(chat(V4, reply=thought())),
        put(M, 3, {"role": "assistant", "content": None, "refusal": "no"}),
    ),
    # Moonshot
    case(
        "index 3",
        "moonshot",
        edited(closed(chat("kimi-k3", reply=thought())), put(M, 3, "reasoning_content", "")),
        drop(M, 3, "reasoning_content"),
    ),
    case(
        "only type=enabled",
        "moonshot",
        chat("kimi-k2-thinking", reply=thought()),
        put("thinking", {"type": "disabled"}),
    ),
    case("unknown type", "moonshot", KIMI, put("thinking", {"type": "adaptive"})),
    case(
        "keep",
        "moonshot",
        chat("kimi-k2.5", reply=thought()),
        put("thinking", {"type": "enabled", "keep": "all"}),
    ),
    case("keep", "moonshot", KIMI, put("thinking", {"type": "enabled", "keep": "some"})),
    case("reasoning_effort", "moonshot", KIMI, put("reasoning_effort", "high")),
    case(
        "none",
        "moonshot",
        chat("kimi-k3", reply=thought(), reasoning_effort="high"),
        put("reasoning_effort", "none"),
    ),
    case("'required' is incompatible", "moonshot", KIMI, put("tool_choice", "required")),
    case("position 3", "moonshot", closed(KIMI), put(M, 3, "content", "")),
    # OpenRouter and Gemini's copy
    case(
        "reasoning_details.0",
        "openrouter",
        ROUTED,
        put(M, 1, "reasoning_details", 0, "type", "thought"),
    ),
    case("reasoning_details.1", "openrouter", ROUTED, drop(M, 1, "reasoning_details", 1, "data")),
    case(
        "Only one of",
        "openrouter",
        {**ROUTED, "reasoning": {"effort": "low"}},
        put("reasoning", "max_tokens", 9),
    ),
    case(
        "reasoning.effort",
        "openrouter",
        {**ROUTED, "reasoning": {"effort": "low"}},
        put("reasoning", "effort", "so-so"),
    ),
    case(
        "must be passed back",
        "openrouter",
        chat("deepseek/deepseek-v4", reply={"reasoning": "The tool knows."}),
        drop(M, 1, "reasoning"),
    ),
    case(
        "Invalid `signature`", "openrouter", ROUTED, drop(M, 1, "reasoning_details", 0, "signature")
    ),
    case(
        "Expected `thinking`",
        "openrouter",
        {**ROUTED, "reasoning": {"max_tokens": 2_048}},
        drop(M, 1, "reasoning_details"),
    ),
    case(
        "thought_signature",
        "openrouter",
        chat("google/gemini-3-pro", reply={"reasoning_details": DETAILS[1:]}),
        drop(M, 1, "reasoning_details"),
    ),
    case(
        "thought_signature",
        "google",
        edited(
            chat("gemini-3-pro"),
            put(
                M, 1, "tool_calls", 0, "extra_content", {"google": {"thought_signature": SIGNATURE}}
            ),
        ),
        drop(M, 1, "tool_calls", 0, "extra_content"),
    ),
    # other hosts of Chat Completions
    case(
        "2013",
        "minimax",
        chat("MiniMax-M3", thinking={"type": "disabled"}),
        put("thinking", {"type": "enabled"}),
    ),
    case(
        "cannot be disabled",
        "zai",
        chat("glm-5.3", thinking={"type": "enabled"}),
        put("thinking", {"type": "disabled"}),
    ),
    case(
        "thinking.type",
        "zai",
        chat("glm-5", thinking={"type": "disabled"}),
        put("thinking", {"type": "adaptive"}),
    ),
    case(
        "JSON format",
        "qwen",
        chat("qwen3-max"),
        put(M, 1, "tool_calls", 0, "function", "arguments", "{"),
    ),
    case(
        "is unsupported",
        "groq",
        chat("gpt-oss-120b", reply=thought("reasoning")),
        put(M, 1, "reasoning_content", "Plan."),
    ),
    case(
        "cannot specify both",
        "groq",
        chat("qwen3", reasoning_format="parsed"),
        put("include_reasoning", True),
    ),
    case("raw", "groq", chat("qwen3", tools=TOOLS), put("reasoning_format", "raw")),
    case(
        "is unsupported",
        "cerebras",
        chat("gpt-oss-120b", reply=thought("reasoning")),
        put(M, 1, "reasoning_content", "Plan."),
    ),
)
