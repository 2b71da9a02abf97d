"""A strict provider that knows what it has said: for clients that nobody here has written.

It takes as many steps as the last question asks for, with a tool that the client has. It refuses a
request without the reasoning that it demands, with a seal that it never gave, and with a reference
to an item that it does not have. It accepts two things that Codex sends to OpenAI, and that OpenAI
does not document: ``client_metadata``, and a reasoning item whose content is null.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from hashlib import blake2b
from itertools import count
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import refusal, response
from reasoning_store.testing.strict_provider import Record
from tests.docs.provider import THINKS, Answer, Asked, Provider

QUESTION = "Question {}?"
STEPS = (20, 2)
"""How many tools are called for each question."""
TITLE = "Questions"
"""The answer to a request without tools: agents ask for a title."""
_ASKED = re.compile(r"Question (\d)\?")
_RESULT = re.compile(r'"role": "tool"|"type": "(?:tool_result|function_call_output)"')
_TOOLS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "get_weather": lambda number: {"city": f"city {number}"},
    "exec_command": lambda number: {"cmd": f"echo {number}"},
    "bash": lambda number: {"command": f"echo {number}", "description": "Say a number"},
}
"""The tools that the clients have, each with what it is called with."""


def own_id(number: int, prefix: str = "call_") -> str:
    """Return an id that no other call or item has, as the providers make them."""
    return prefix + blake2b(str(number).encode(), digest_size=12).hexdigest()


class ClientsProvider(Provider):
    """A provider that keeps what it was asked and what it said."""

    def __init__(
        self, *, call_id: Callable[[int, int], str] | None = None, refuses: bool = True
    ) -> None:
        """``call_id`` makes the id of a call, of the reply's number and of the step."""
        super().__init__(self._reply)
        self.said: list[rs.Message] = []
        """The replies, without those to requests that have no tools."""
        self.crossed: list[str] = []
        """Thoughts that came back in a run with another ``seed``, or at another place."""
        self.returned = 0
        """How many thoughts came back in Chat Completions."""
        self._thought: dict[str, tuple[Any, int]] = {}
        self._refuses = refuses
        self._call_id = call_id or (lambda number, step: own_id(number))
        self._numbers = count()
        self._record = Record()
        self._items: dict[str, Mapping[str, Any]] = {}
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Answer | str:
        with self._lock:
            self.asked.append(asked)
            try:
                body = self._resolved(asked.body)
            except KeyError as missing:
                said: str | None = f"Item with id {missing} not found."
            else:
                said = refusal(
                    body,
                    provider=asked.provider,
                    model=asked.model,
                    api=asked.api,
                    record=self._record,
                )
            self._check_thoughts(asked.body)
            if said is not None and self._refuses:
                self.refused.append(said)
                return said
            answer = self._reply(asked)
            whole = response(
                answer.message, api=asked.api, provider=asked.provider, model=asked.model
            )
            blocks = whole.get("output") or whole.get("content") or []
            self._items.update((str(block.get("id")), block) for block in blocks)
            self._record.answered(body, blocks)
            return answer

    def _resolved(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a body with the items that its references name; KeyError if one is unknown."""
        known = {key: value for key, value in body.items() if key != "client_metadata"}
        if isinstance(body.get("input"), list):
            known["input"] = [self._resolved_item(item) for item in body["input"]]
        return known

    def _resolved_item(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        if item.get("type") == "item_reference":
            return self._items[item["id"]]
        is_empty = item.get("type") == "reasoning" and item.get("content", "") is None
        return {key: item[key] for key in item if key != "content"} if is_empty else item

    def _check_thoughts(self, body: Mapping[str, Any]) -> None:
        replies = [one for one in body.get("messages") or () if one["role"] == "assistant"]
        for place, reply in enumerate(replies):
            if thought := reply.get("reasoning_content"):
                self.returned += 1
                if self._thought[thought] != (body.get("seed"), place):
                    self.crossed.append(thought)

    def _reply(self, asked: Asked) -> Answer:
        think, call_metadata = THINKS[asked.api]
        usage = rs.Usage(input=40, output=12, reasoning=5)
        tools = [one.get("function", one).get("name") for one in asked.body.get("tools") or ()]
        if not tools:
            return Answer(message=rs.assistant(TITLE, usage=usage))
        conversation = json.dumps(asked.body.get("messages") or asked.body.get("input"))
        *_, question = _ASKED.finditer(conversation)
        step = len(_RESULT.findall(conversation[question.end() :]))
        number = next(self._numbers)
        name = own_id(number, "")
        thought = f"Thought {number} at step {step}."
        place = conversation.count('"role": "assistant"')
        self._thought[thought] = (asked.body.get("seed"), place)
        blocks: list[rs.Block] = [*think(thought, name)]
        if step < STEPS[int(question[1])]:
            tool = next(name for name in tools if name in _TOOLS)
            call = rs.ToolCallBlock(
                id=self._call_id(number, step),
                name=tool,
                parameters=_TOOLS[tool](step),
                provider_metadata=call_metadata(name, 0),
            )
            blocks.append(call)
        else:
            said = {"item_id": f"msg_{name}"} if asked.api == "openai.responses" else None
            text = f"Done with question {question[1]} at {number}."
            blocks.append(rs.TextBlock(text=text, provider_metadata=said))
        message = rs.assistant(*blocks, usage=usage)
        self.said.append(message)
        return Answer(message=message)
