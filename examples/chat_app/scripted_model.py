"""Models without a key and without a network, as strict as the servers of DeepSeek and Moonshot.

They refuse a request that misses reasoning which their provider demands, think before they answer,
ask for a tool where the question is about the weather, and stream word by word.
"""

from __future__ import annotations

import asyncio
import json
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
HELLO = """Hello! I am a scripted model, so I know four things:

- whether **91 is a prime number**
- the **weather** in any city, for which I use a tool
- a long **story**, so that you can press stop
- the type of a **picture**, if you choose a model that takes pictures"""


async def create(provider: str | None, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
    """Answer as ``client.chat.completions.create(stream=True)`` of a provider's server does."""
    body = {**kwargs, **kwargs.pop("extra_body", {})}
    said = refusal(body, provider=provider or "", model=body["model"])
    if said is not None:
        raise RuntimeError(f"400: {said}")
    return _speak(_answer(body["messages"]), provider, body["model"])


async def _speak(
    message: rs.Message, provider: str | None, model: str
) -> AsyncIterator[dict[str, Any]]:
    longest = max(len(text) for text in (message.text, *(t.thought for t in message.thinking)))
    pieces = max(2, longest // 6)
    for event in stream(message, api="openai.chat", provider=provider, model=model, pieces=pieces):
        await asyncio.sleep(PAUSE)
        yield event


def _answer(messages: list[dict[str, Any]]) -> rs.Message:
    thought, said = _thought_and_answer(messages)
    answered = said if isinstance(said, str) else json.dumps(said.parameters)
    usage = rs.Usage(
        input=sum(len(_text(one["content"])) for one in messages if one.get("content")) // 4,
        output=(len(thought) + len(answered)) // 4,
        reasoning=len(thought) // 4,
    )
    block = rs.ThinkingBlock(thought=thought, source_field="reasoning_content")
    return rs.assistant(block, said, usage=usage)


def _thought_and_answer(messages: list[dict[str, Any]]) -> tuple[str, str | rs.ToolCallBlock]:
    content = next(one["content"] for one in reversed(messages) if one["role"] == "user")
    asked = _text(content).lower()
    parts = [] if isinstance(content, str) else content
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if messages[0]["content"].startswith("Sum up"):
        return "I keep what matters.", f"We have talked so far in {len(asked)} characters."
    if messages[-1]["role"] == "tool":
        found = messages[-1]["content"]
        return f"The tool says {found}.", f"It is **{found}** right now."
    if pictures:
        kind = pictures[0].partition(";")[0].removeprefix("data:")
        return "A picture. I read its type.", f"You sent a picture: its type is **{kind}**."
    if "weather" in asked:
        city = asked.rstrip("?!. ").split()[-1].capitalize()
        thought = f"I need the weather in {city}. There is a tool for that."
        name = f"call_{len(messages)}"
        return thought, rs.ToolCallBlock(id=name, name="get_weather", parameters={"city": city})
    if "story" in asked:
        thought = "A story, and a long one. A lighthouse would do, with a keeper who listens."
        return thought, "".join(STORY * 3).strip()
    if "91" in asked or "prime" in asked:
        thought = "Try the small primes. 2, 3 and 5 do not divide 91. 7 * 13 = 91: not prime."
        return thought, PRIMES
    return "A greeting, or something that I do not know. I say what I can do.", HELLO


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")
