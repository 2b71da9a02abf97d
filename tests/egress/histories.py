"""Histories for tests of egress: small ones by hand, and any that Hypothesis can think of."""

from __future__ import annotations

from hypothesis import strategies as st

import reasoning_store as rs

DEEPSEEK = rs.Origin(provider="deepseek", api="openai.chat", model="deepseek-chat")
CLAUDE = rs.Origin(provider="anthropic", api="anthropic.messages", model="claude-opus-5")
ROUTED = rs.Origin(provider="openrouter", api="openai.chat", model="anthropic/claude-opus-5")
XAI = rs.Origin(provider="xai", api="openai.chat", model="grok-5")
MISTRAL = rs.Origin(provider="mistral", api="mistral.chat", model="mistral-medium-3.5")
ORIGINS = (None, DEEPSEEK, CLAUDE, ROUTED, XAI, MISTRAL)


def thought(text: str) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field="reasoning_content")


def call(id: str = "call_1") -> rs.ToolCallBlock:
    return rs.ToolCallBlock(
        id=id, name="get_weather", parameters={"city": "Oslo"}, arguments='{"city":"Oslo"}'
    )


def answer(id: str = "call_1") -> rs.Message:
    return rs.tool(rs.ToolResponseBlock(call_id=id, tool_name="get_weather", result="4 C"))


TWO_TURNS = (
    rs.user("Weather in Oslo?"),
    rs.assistant(thought("Need the weather tool."), call(), origin=DEEPSEEK),
    answer(),
    rs.assistant(thought("The tool says 4 C."), "It is 4 C in Oslo.", origin=DEEPSEEK),
    rs.user("And Bergen?"),
    rs.assistant(thought("Bergen is wetter."), "Wet.", origin=DEEPSEEK),
)
"""A closed turn with a tool call, and an open one without."""

OPEN_LOOP = (
    rs.user("Hello"),
    rs.assistant(thought("A greeting."), "Hello!", origin=DEEPSEEK),
    rs.user("Weather in Oslo?"),
    rs.assistant(thought("Need the weather tool."), "One moment.", call(), origin=DEEPSEEK),
    answer(),
)
"""A tool was called and has answered; the model is next."""

SIGNED = rs.ThinkingBlock(thought="Think twice.", source_field="thinking", signature="c2ln")
REDACTED = rs.ThinkingBlock(
    source_field="redacted_thinking", encrypted="UkVE", redacted=True, is_hidden=True
)

EVERYTHING = (
    rs.system("The user is in Norway."),
    rs.user("Weather in Oslo?"),
    rs.assistant(thought("Need the weather tool."), "One moment.", call("c-1"), origin=DEEPSEEK),
    answer("c-1"),
    rs.assistant(SIGNED, REDACTED, "It is 4 C.", origin=CLAUDE),
    rs.user("And Bergen?"),
    rs.user("Or Molde?"),
    rs.assistant(
        rs.ThinkingBlock(thought="Hm", source_field="reasoning", interrupted=True),
        "I thi",
        status="interrupted",
        origin=ROUTED,
    ),
    rs.user("Go on."),
    rs.assistant(thought("Ask both."), call("c-2"), call("c-3"), origin=DEEPSEEK),
    answer("c-2"),
    answer("c-3"),
)
"""Several makers, signed and redacted thoughts, an interrupted reply, parallel calls."""

texts = st.text(max_size=8)
SOURCES = (None, "reasoning_content", "reasoning", "thinking", "reasoning_details", "think_tags")
thinking = st.builds(
    rs.ThinkingBlock,
    thought=texts,
    source_field=st.sampled_from(SOURCES),
    signature=st.none() | st.just("c2ln"),
    encrypted=st.none() | st.just("RU5D"),
    redacted=st.booleans(),
    interrupted=st.booleans(),
).filter(lambda block: bool(block.thought or block.signature or block.encrypted))
"""Any thought but an empty one, which is not stored."""
usages = st.none() | st.builds(rs.Usage, reasoning=st.none() | st.integers(0, 50))
call_ids = st.sampled_from(["call_1", "call_2", "functions.get_weather:0", ""])
calls = st.builds(call, call_ids)
assistant_messages = st.builds(
    lambda blocks, origin, usage, status: rs.Message(
        role="assistant", blocks=tuple(blocks), origin=origin, usage=usage, status=status
    ),
    st.lists(
        thinking | st.builds(rs.TextBlock, text=texts) | calls,
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(ORIGINS),
    usages,
    st.sampled_from(["complete", "interrupted"]),
)
views = st.lists(
    st.builds(rs.user, texts) | assistant_messages | st.builds(answer, call_ids), max_size=8
)
"""Any order of messages, sensible or not."""

settings = st.builds(
    rs.ReasoningSettings,
    include_in_context=st.booleans(),
    strip_from_context=st.sampled_from(["all", "allButLast", "none", "priorTurns"]),
    floor=st.sampled_from(["provider", "off"]),
)
providers = st.sampled_from([None, "openai", "deepseek", "moonshot"])

TARGETS = (
    (None, None, None),
    ("openai", "gpt-5.6", "openai.chat"),
    ("deepseek", "deepseek-v4", None),
    ("moonshot", "kimi-k2.5", None),
    ("moonshot", "kimi-k3", None),
    ("openrouter", "anthropic/claude-opus-5", None),
    ("openrouter", "google/gemini-3-pro", None),
    ("openrouter", "deepseek/deepseek-v4", None),
    ("xai", "grok-5", "openai.chat"),
    ("minimax", "minimax-m2", None),
    ("zai", "glm-5.2", None),
    ("alibaba", "qwen4-max", None),
    ("vllm", "qwen3", None),
    ("cerebras", "zai-glm-4.7", None),
    ("google", "gemini-3-pro", "openai.chat"),
    ("litellm", "anthropic/claude-opus-5", None),
    ("mistral", "mistral-medium-3.5", None),
    ("ollama", "qwen3", None),
    ("cohere", "command-a-reasoning", None),
    ("anthropic", "claude-opus-5", None),
)
"""Whom requests are for: provider, model, api."""
targets = st.sampled_from(TARGETS)
