"""Random conversations of many kinds, as their clients send them, and what may go back to each.

Every thought names its conversation and its reply. A client keeps role, text and calls.
"""

from __future__ import annotations

import random
import string
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import response
from tests.docs.provider import THINKS
from tests.egress.targets import Thoughts

HOSTS: Mapping[str, tuple[str, str, str]] = {
    "openai.chat": ("deepseek", "deepseek-flash", "/v1/chat/completions"),
    "anthropic.messages": ("anthropic", "claude-sonnet-4-6", "/v1/messages"),
    "openai.responses": ("openai", "gpt-5", "/v1/responses"),
    "gemini.generate_content": (
        "google",
        "gemini-3-pro",
        "/v1beta/models/gemini-3-pro:generateContent",
    ),
}
COMMON = ("Done.", "You're welcome!", "4", "Hello! How can I help you?", "ok")
LIST = {"path": "."}


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of a client."""

    message: rs.Message
    thought: str | None = None
    """The thought that the reply came with, where it was made here."""
    before: tuple[str, ...] = ()
    """What stood before the reply when it was thought."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a client."""

    messages: Sequence[Sent]
    system: str = ""
    session_id: str | None = None
    group: str | None = None
    fails: bool = False
    """The provider refuses it."""
    cut: int | None = None
    """The client stops the reply after so many characters of its text."""


@dataclass(slots=True)
class Chat:
    """One conversation of one client."""

    number: int
    kind: str
    rng: random.Random
    api: str
    ids: str = "own"
    word: str = ""
    messages: list[Sent] = field(default_factory=list)
    system: str = "You are helpful."
    group: str | None = None
    replies: int = 0

    def make_ids(self, count: int) -> list[str]:
        letters = string.ascii_letters + string.digits
        if self.ids == "own":
            return ["call_" + "".join(self.rng.choices(letters, k=24)) for _ in range(count)]
        if self.ids == "none":
            return [""] * count
        return [f"functions.ls:{self.replies + number}" for number in range(count)]

    def answer(self, *, calls: int = 0, text: str | None = None) -> rs.Message:
        """Return the next reply of the model, with a thought that names it."""
        think: Thoughts = THINKS[self.api][0]
        self.replies += 1
        name = f"C{self.number}R{self.replies};"
        if text is None:
            common = self.rng.random() < 0.3
            text = self.rng.choice(COMMON) if common else f"Answer {self.rng.random()} é."
        made = [
            rs.ToolCallBlock(id=id, name="list_files", parameters=LIST)
            for id in self.make_ids(calls)
        ]
        return rs.assistant(*think(f"thought {name}", f"{self.number}_{self.replies}"), text, *made)

    def ask(self, messages: Sequence[Sent] | None = None, **more: Any) -> Ask:
        given = {"system": self.system, "group": self.group, **more}
        return Ask(tuple(self.messages if messages is None else messages), **given)

    def keep(self, reply: rs.Message) -> Sent:
        """Return a reply as the client keeps it."""
        kept = [block for block in reply.blocks if block.type != "thinking"]
        thought = "".join(block.thought for block in reply.thinking)
        return Sent(rs.assistant(*kept), thought, before(self.system, self.messages))

    def say(self, text: str) -> None:
        self.messages.append(Sent(rs.user(text)))

    def results(self, reply: rs.Message) -> None:
        self.messages += [
            Sent(rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name="list_files", result="a")))
            for call in reply.tool_calls
        ]


def plain(text: str) -> str:
    return "".join(unicodedata.normalize("NFC", text).split())


def before(system: str, messages: Iterable[Sent]) -> tuple[str, ...]:
    """Return what stands before a reply, without what clients may change of it."""
    told = [plain(system)]
    for one in messages:
        ids = [call.id for call in one.message.tool_calls]
        results = [
            b.call_id + str(b.result) for b in one.message.blocks if b.type == "tool_response"
        ]
        own = ids and all(len(id) > 20 for id in ids)
        told.append("|".join(ids) if own else plain(one.message.text) + "|".join([*ids, *results]))
    return tuple(told)


Course = Generator[Ask, rs.Message, None]


def turn(chat: Chat, question: str, *, steps: int = 0, sent: Any = None) -> Course:
    """Ask, call tools so many times, and take the answer."""
    chat.say(question)
    for step in range(int(steps) + 1):
        reply = yield chat.ask(*(() if sent is None else (sent(chat.messages),)))
        chat.messages.append(chat.keep(reply))
        chat.results(reply)
        assert (step < steps) == bool(reply.tool_calls)


def question(chat: Chat) -> str:
    return chat.rng.choice(("go on", "thanks", "why?", f"about {chat.rng.random()}"))


def talk(chat: Chat, *, steps: int = 0, turns: int = 3, first: str | None = None) -> Course:
    for number in range(turns):
        asked = first if first and not number else f"{question(chat)} {chat.word * (not number)}"
        yield from turn(chat, asked, steps=steps)


def loop(chat: Chat) -> Course:
    yield from talk(chat, steps=3, turns=2)


def equal_prompts(chat: Chat) -> Course:
    """Parallel runs of one prompt: only the ids of the calls differ."""
    yield from talk(chat, steps=3, turns=2, first="Tidy up this folder.")


def few_shot(chat: Chat) -> Course:
    """Examples that no model made here, the same in each request."""
    for text, label in (("Anna coughs", "negative"), ("Ben laughs", "positive")):
        chat.say(text)
        chat.messages.append(Sent(rs.assistant(label)))
    yield from turn(chat, f"{chat.word} sneezes")


def greeting(chat: Chat) -> Course:
    """A greeting that gets the same answer, each with a system prompt of its own."""
    chat.system = f"The user is {chat.word}."
    yield from talk(chat, turns=3, first="hi")


def clock(chat: Chat) -> Course:
    """The system prompt tells the time."""
    for number in range(3):
        chat.system = f"It is 10:{chat.rng.randrange(60)}:{number}."
        yield from turn(chat, f"{question(chat)} {chat.word}", steps="loop" in chat.kind)


def window(chat: Chat) -> Course:
    """The client sends its last six messages."""
    for number in range(5):
        yield from turn(chat, f"{number} {chat.word}", sent=lambda all: all[-5:])


def compacted(chat: Chat) -> Course:
    """The client puts a summary of its own in the place of the beginning."""
    yield from talk(chat, turns=3)
    chat.messages[:4] = [Sent(rs.user(f"Summary of {chat.word}."))]
    yield from talk(chat, turns=1)


def cleared(chat: Chat) -> Course:
    """The client clears old results."""
    yield from talk(chat, steps=2, turns=2)
    for index, one in enumerate(chat.messages[:-4]):
        if one.message.role == "tool":
            (block,) = one.message.blocks
            assert isinstance(block, rs.ToolResponseBlock)
            chat.messages[index] = Sent(rs.tool(replace(block, result="[cleared]")))
    yield from talk(chat, steps=2, turns=1)


def edited(chat: Chat) -> Course:
    """The user takes a password out of the first question, and asks on."""
    yield from talk(chat, turns=2, first=f"my password is hunter2 {chat.word}")
    chat.messages[0] = Sent(rs.user(f"my password is secret {chat.word}"))
    yield from talk(chat, turns=1)


def altered(chat: Chat) -> Course:
    """The client trims, composes characters anew, re-orders results, fills in empty texts."""
    chat.say(f"look {chat.word}")
    for calls in (2, 2, 0):
        reply = yield chat.ask()
        kept = chat.keep(reply)
        text = unicodedata.normalize("NFD", f"  {kept.message.text}\n")
        blocks = [block for block in kept.message.blocks if block.type == "tool_call"]
        chat.messages.append(replace(kept, message=rs.assistant(text, *blocks)))
        start = len(chat.messages)
        chat.results(reply)
        chat.messages[start:] = reversed(chat.messages[start:])
        assert len(reply.tool_calls) == calls


def retried(chat: Chat) -> Course:
    """A request is refused, and sent again; the last answer is made anew."""
    chat.say(f"try {chat.word}")
    yield chat.ask(fails=True)
    reply = yield chat.ask()
    chat.messages.append(chat.keep(reply))
    yield from turn(chat, "more")
    chat.messages.pop()
    reply = yield chat.ask()
    chat.messages.append(chat.keep(reply))
    yield from turn(chat, "and on")


def elsewhere(chat: Chat) -> Course:
    """It began without us, with calls that others make, too."""
    chat.say(f"begun elsewhere {chat.word}")
    call = rs.ToolCallBlock(id=chat.make_ids(1)[0], name="list_files", parameters=LIST)
    chat.messages.append(Sent(rs.assistant(call)))
    chat.results(chat.messages[-1].message)
    chat.messages.append(Sent(rs.assistant(chat.rng.choice(COMMON))))
    yield from talk(chat, steps=1, turns=2)


def stopped(chat: Chat) -> Course:
    """The user stops a reply half-way, and goes on with what was seen."""
    chat.say(f"tell me {chat.word}")
    reply = yield chat.ask(cut=12)
    kept = chat.keep(reply)
    chat.messages.append(replace(kept, message=rs.assistant(reply.text[:9])))
    yield from talk(chat, turns=2)


def grouped(chat: Chat) -> Course:
    """The client names the conversation itself; all are byte for byte equal."""
    chat.group = f"session-{chat.number}"
    yield from talk(chat, turns=3, first="hi")


def merged(chat: Chat) -> Course:
    """The client puts a reply and the questions around it into one message."""
    yield from talk(chat, turns=2)
    texts = [one.message.text for one in chat.messages[:3]]
    chat.messages[:3] = [Sent(rs.user("\n".join(texts)))]
    yield from talk(chat, turns=2)


def reordered(chat: Chat) -> Course:
    """The client puts a later turn before an earlier one."""
    yield from talk(chat, turns=2)
    chat.messages[:] = [*chat.messages[2:], *chat.messages[:2]]
    yield from talk(chat, turns=2)


def partly(chat: Chat) -> Course:
    """Another provider answers one of the questions."""
    yield from talk(chat, turns=1)
    chat.say(question(chat))
    chat.messages.append(Sent(rs.assistant(chat.rng.choice(COMMON))))
    yield from talk(chat, turns=2)


def sharing(chat: Chat) -> Course:
    """Several clients send one and the same key, and begin alike."""
    chat.group = "tenant-v1"
    yield from talk(chat, steps="loop" in chat.kind, turns=3, first="hi")


KINDS: Mapping[str, Callable[[Chat], Course]] = {
    "plain": talk,
    "loop": loop,
    "loop with counted ids": loop,
    "loop without ids": loop,
    "equal prompts": equal_prompts,
    "few-shot": few_shot,
    "greeting": greeting,
    "clock": clock,
    "clock in a loop": clock,
    "clock in a loop with counted ids": clock,
    "window": window,
    "compacted": compacted,
    "cleared": cleared,
    "cleared with counted ids": cleared,
    "edited": edited,
    "altered": altered,
    "retried": retried,
    "elsewhere": elsewhere,
    "elsewhere with counted ids": elsewhere,
    "stopped": stopped,
    "grouped": grouped,
    "merged": merged,
    "reordered": reordered,
    "answered elsewhere in part": partly,
    "sharing a key": sharing,
    "sharing a key in a loop": sharing,
    "sharing a key in a loop with counted ids": sharing,
}
STEPS: Mapping[str, tuple[int, ...]] = {
    "loop": (1, 1, 1, 0),
    "equal prompts": (2, 2, 2, 0),
    "clock in a loop": (1, 0),
    "cleared": (1, 1, 0),
    "altered": (2, 2, 0),
    "elsewhere": (1, 0),
    "sharing a key in a loop": (1, 0),
}
"""How many calls the model makes, reply after reply."""


def make_chat(number: int, kind: str, api: str, rng: random.Random) -> Chat:
    ids = {"counted ids": "counted", "without ids": "none"}
    own = next((value for name, value in ids.items() if kind.endswith(name)), "own")
    if api == "openai.responses" and own == "none":
        own = "counted"  # its calls always have ids
    return Chat(number, kind, random.Random(rng.random()), api, own, word=f"w{number}")


def answer(chat: Chat, calls: Iterable[int]) -> rs.Message:
    equal = chat.kind.startswith(("greeting", "grouped", "equal prompts", "sharing"))
    text = COMMON[chat.replies % len(COMMON)] if equal else None
    return chat.answer(calls=next(iter(calls), 0), text=text)


def body_of(ask: Ask, api: str) -> dict[str, Any]:
    """Return the body of a request."""
    _, model, _ = HOSTS[api]
    parts: list[Any] = []
    for one in ask.messages:
        parts += rs.write_message(one.message, api=api, model=model, provider=HOSTS[api][0])
    if api == "openai.chat":
        parts = [{"role": "system", "content": ask.system}, *parts]
        return {"model": model, "messages": parts}
    if api == "anthropic.messages":
        return {"model": model, "system": ask.system, "messages": parts, "max_tokens": 99}
    if api == "gemini.generate_content":
        return {"systemInstruction": {"parts": [{"text": ask.system}]}, "contents": parts}
    return {"model": model, "instructions": ask.system, "input": parts}


def response_of(reply: rs.Message, api: str, number: str) -> dict[str, Any]:
    provider, model, _ = HOSTS[api]
    found = response(reply, api=api, provider=provider, model=model)
    return {**found, "id": f"resp_{number}"}
