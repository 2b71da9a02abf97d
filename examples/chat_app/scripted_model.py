"""A model without a key and without a network, as strict as DeepSeek's own server.

It refuses a request that misses reasoning which DeepSeek demands, thinks before it answers, asks
for a tool where the question is about the weather, and streams word by word.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import refusal, stream

PAUSE = float(os.environ.get("CHAT_APP_PAUSE", "0.03"))
"""Seconds between two pieces."""

STORY = (
    "On the **first** night the lighthouse keeper wrote down what the sea said. ",
    "On the second night he noticed that it repeated itself, but never quite. ",
    "He learned its words for wind, for rope, and for the long patience of stones. ",
    "By winter the log was full, and he sent a copy to the mainland with a note: ",
    "*nothing to report, everything to read*.\n\n",
)
PRIMES = """**No.** 91 is not a prime number: `91 = 7 * 13`.

- 91 is odd, and its digits add up to 10, so neither 2 nor 3 divides it.
- It does not end in 0 or 5.
- 7 * 13 = 91, so we are done."""
HELLO = """Hello! I am a scripted model, so I know three things:

- whether **91 is a prime number**
- the **weather** in any city, for which I use a tool
- a long **story**, so that you can press stop"""


async def create(**kwargs: Any) -> AsyncIterator[dict[str, Any]]:
    """Answer as ``client.chat.completions.create(stream=True)`` of a server does."""
    body = {**kwargs, **kwargs.pop("extra_body", {})}
    said = refusal(body, provider="deepseek", model=body["model"])
    if said is not None:
        raise RuntimeError(f"400: {said}")
    return _speak(_answer(body["messages"]), body["model"])


async def _speak(message: rs.Message, model: str) -> AsyncIterator[dict[str, Any]]:
    longest = max(len(text) for text in (message.text, *(t.thought for t in message.thinking)))
    events = stream(
        message, api="openai.chat", provider="deepseek", model=model, pieces=max(2, longest // 6)
    )
    for event in events:
        await asyncio.sleep(PAUSE)
        yield event


def _answer(messages: list[dict[str, Any]]) -> rs.Message:
    last = messages[-1]
    asked = next(str(one["content"]) for one in reversed(messages) if one["role"] == "user").lower()
    if last["role"] == "tool":
        thought, said = (
            f"The tool says {last['content']}.",
            f"It is **{last['content']}** right now.",
        )
        return _reply(thought, said)
    if "weather" in asked:
        city = asked.rstrip("?!. ").split()[-1].capitalize()
        call = rs.ToolCallBlock(
            id=f"call_{len(messages)}", name="get_weather", parameters={"city": city}
        )
        return _reply(f"I need the weather in {city}. There is a tool for that.", call)
    if "story" in asked:
        thought = "A story, and a long one. A lighthouse would do, with a keeper who listens."
        return _reply(thought, "".join(STORY * 3).strip())
    if "91" in asked or "prime" in asked:
        thought = (
            "Try the small primes. 2, 3 and 5 do not divide 91. 7 * 13 = 91, so it is not prime."
        )
        return _reply(thought, PRIMES)
    return _reply("A greeting, or something that I do not know. I say what I can do.", HELLO)


def _reply(thought: str, said: str | rs.ToolCallBlock) -> rs.Message:
    block = rs.ThinkingBlock(thought=thought, source_field="reasoning_content")
    return rs.assistant(block, said)
