"""What the tests of the writing direction share: conversations, and how they are written.

``conversations`` makes any conversation that a protocol's messages can be part of, its calls
answered: what repairs leave to a writer. ``drained`` reads what an SDK's types accept, for
their lists are checked only as they are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.wire import contract_lookup, registry
from reasoning_store.wire.message_writer import Outgoing, Written
from reasoning_store.wire.reasoning_options import ReasoningOptions
from tests import strategies

CASES = Path(__file__).parents[1] / "cases" / "wire"

TOOL: Mapping[str, Any] = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
NOTHING = ReasoningOptions()


def written(
    messages: Sequence[rs.Message],
    provider: str | None,
    model: str | None = None,
    api: str | None = None,
    *,
    options: ReasoningOptions = NOTHING,
    system: Any = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    owed: bool = False,
) -> Written:
    """Write messages that are selected and repaired already."""
    contract = contract_lookup.find_contract(provider, model, api)
    outgoing = [Outgoing(item, owed and item.role == "assistant") for item in messages]
    writer = registry.find_protocol(contract.api).writer(contract)
    return writer.write(outgoing, model=model, system=system, tools=tools, options=options)


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def reply(file: Mapping[str, Any], variant: int, model: str | None = None) -> rs.Message:
    """A recorded reply, as it is stored."""
    return rs.normalize_response(
        file["variants"][variant]["nonstream"],
        provider=file["provider"],
        api=file["api"],
        model=model,
    )


def answers(message: rs.Message, *results: str) -> rs.Message:
    """What tools answer to a message's calls."""
    return rs.tool(
        *(
            rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result=result)
            for call, result in zip(message.tool_calls, results, strict=True)
        )
    )


def weather(first: rs.Message, last: rs.Message, *results: str) -> tuple[rs.Message, ...]:
    """The scenario of every case: a call, its answer, and a question after it."""
    return (
        rs.user("Weather in Oslo?"),
        first,
        answers(first, *results),
        last,
        rs.user("And Bergen?"),
    )


def drained(value: Any) -> Any:
    """A value with all that is lazy in it read."""
    if isinstance(value, Mapping):
        return {name: drained(item) for name, item in value.items()}
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    return [drained(item) for item in value]


def asks(
    provider: str, model: str, *, api: str | None = None, **asked: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a request asks of reasoning, next to its messages, and what it cannot say."""
    found = written([rs.user("Hi")], provider, model, api, options=ReasoningOptions(**asked))
    about = {
        name: value
        for name, value in found.body.items()
        if name not in ("model", "messages", "input", "contents", "include", "store")
    }
    return about, found.options_not_sent.without_parameter


_WORDS = st.sampled_from(["Oslo", " ", "\n", "", "4 C", "x"])
_users = st.lists(_WORDS, max_size=2).map(lambda texts: rs.user(*texts))
_systems = _WORDS.map(rs.system)


@st.composite
def conversations(draw: st.DrawFn, api: str, provider: str, model: str | None) -> list[rs.Message]:
    """Users who speak twice, systems in between, replies without a user, answers in pieces."""
    origin = rs.Origin(provider=provider, api=api, model=model)
    messages: list[rs.Message] = []
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from("user user system assistant assistant assistant".split()))
        if kind != "assistant":
            messages.append(draw(_users if kind == "user" else _systems))
            continue
        said = draw(strategies.carried(api, provider=provider, model=model))
        messages.append(replace(said, origin=origin))
        given = [
            rs.ToolResponseBlock(
                call_id=call.id,
                tool_name=call.name,
                result=draw(_WORDS | st.just({"deep": [1, None]})),
                is_error=draw(st.booleans()),
            )
            for call in draw(st.permutations(said.tool_calls))
        ]
        cut = draw(st.integers(0, len(given)))
        messages += [rs.tool(*part) for part in (given[:cut], given[cut:]) if part]
    return messages
