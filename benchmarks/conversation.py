"""The conversation that every contender stores: the same words, and nothing left out.

A turn is a user's message of about 40 tokens and a reply that thought for about 600 and
answers in about 200, with what a provider tells of itself: model, usage, finish reason. The
texts come from a fixed seed.

It must not know who stores them.
"""

from __future__ import annotations

import random
from base64 import b64encode
from dataclasses import replace
from functools import cache
from itertools import cycle, islice
from typing import NamedTuple

import reasoning_store as rs

SESSION = "chat-42"
WRITERS = 8
"""So many conversations are written at once, where writers meet."""
API, MODEL = "openai.chat", "thinker-1"
MAKER = {"provider": "thinkers", "api": API, "model": MODEL}
"""Who made the replies, and who is asked next."""
SIGNER = {"provider": "anthropic", "api": "anthropic.messages", "model": "claude-opus-5"}
_SIGNATURE = 900
"""The bytes that sign a thought of this length."""
USAGE = {"input": 412, "output": 806, "reasoning": 598}
_WORDS = """the of and to in is that for it as was with be by on not this are or from at which
but have an had they you were their one all we can her has there been if more when will would
who so no number answer because check between seven prime divide remainder square factor table
function return value error request model token because therefore however first second result
consider example different possible following question already another against""".split()
_DIFFERENT = 64


class Turn(NamedTuple):
    """What was asked, what was thought, what was answered."""

    asked: str
    thought: str
    answered: str


def _prose(chance: random.Random, characters: int) -> str:
    words: list[str] = []
    length = 0
    while length < characters:
        word = chance.choice(_WORDS)
        if chance.random() < 0.08:
            word = str(chance.randrange(1000))
        if chance.random() < 0.12:
            word += chance.choice((".", ",", ":", "\n\n", " -"))
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:characters]


@cache
def _pool() -> tuple[Turn, ...]:
    chance = random.Random(42)
    return tuple(
        Turn(_prose(chance, 180), _prose(chance, 2500), _prose(chance, 850))
        for _ in range(_DIFFERENT)
    )


def turns(messages: int) -> list[Turn]:
    """Return the turns of a conversation of so many messages, two a turn."""
    return list(islice(cycle(_pool()), max(1, messages // 2)))


@cache
def messages() -> tuple[tuple[rs.Message, rs.Message], ...]:
    """Return the pool as messages of ours."""
    origin = rs.Origin(**MAKER)
    return tuple(
        (
            rs.user(turn.asked),
            rs.assistant(
                rs.ThinkingBlock(thought=turn.thought, source_field="reasoning_content"),
                rs.TextBlock(text=turn.answered),
                origin=origin,
                usage=rs.Usage(**USAGE),
                finish_reason="stop",
            ),
        )
        for turn in _pool()
    )


@cache
def signed() -> tuple[tuple[rs.Message, rs.Message], ...]:
    """Return the same as another model's messages, who signs each thought."""
    chance = random.Random(7)
    origin = rs.Origin(**SIGNER)
    return tuple(
        (
            asked,
            replace(
                said,
                blocks=tuple(
                    replace(
                        block,
                        source_field="thinking",
                        signature=b64encode(chance.randbytes(_SIGNATURE)).decode(),
                    )
                    if isinstance(block, rs.ThinkingBlock)
                    else block
                    for block in said.blocks
                ),
                origin=origin,
            ),
        )
        for asked, said in messages()
    )


def prose(characters: int) -> str:
    """Return so many characters of what the model thought and answered."""
    text = "".join(part for turn in _pool() for part in turn[1:])
    return (text * (characters // len(text) + 1))[:characters]
