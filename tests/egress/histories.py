"""Histories for tests of egress: small ones by hand, and any that Hypothesis can think of."""

from __future__ import annotations

from hypothesis import strategies as st

import reasoning_store as rs

DEEPSEEK = rs.Origin(provider="deepseek", api="openai.chat", model="deepseek-chat")
CLAUDE = rs.Origin(provider="anthropic", api="anthropic.messages", model="claude-opus-5")


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

texts = st.text(max_size=8)
thinking = st.builds(
    rs.ThinkingBlock,
    thought=texts,
    source_field=st.sampled_from([None, "reasoning_content", "thinking"]),
    signature=st.none() | st.just("c2ln"),
    encrypted=st.none() | st.just("RU5D"),
)
usages = st.none() | st.builds(rs.Usage, reasoning=st.none() | st.integers(0, 50))
assistant_messages = st.builds(
    lambda blocks, origin, usage: rs.Message(
        role="assistant", blocks=tuple(blocks), origin=origin, usage=usage
    ),
    st.lists(
        thinking | st.builds(rs.TextBlock, text=texts) | st.builds(call), min_size=1, max_size=4
    ),
    st.sampled_from([None, DEEPSEEK, CLAUDE]),
    usages,
)
views = st.lists(st.builds(rs.user, texts) | assistant_messages | st.builds(answer), max_size=8)
"""Any order of messages, sensible or not."""

settings = st.builds(
    rs.ReasoningSettings,
    include_in_context=st.booleans(),
    strip_from_context=st.sampled_from(["all", "allButLast", "none", "priorTurns"]),
    floor=st.sampled_from(["provider", "off"]),
)
providers = st.sampled_from([None, "openai", "deepseek", "moonshot"])
