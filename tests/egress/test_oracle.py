"""BR-004: the number is that of the body, found out without us, whichever way it is asked."""

from __future__ import annotations

import ast
import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from tests.egress import oracle
from tests.egress.targets import TARGETS, Target
from tests.properties import examples

POLICIES = [
    {
        "reasoning.includeInContext": include,
        "reasoning.stripFromContext": strip,
        "reasoning.floor": floor,
    }
    for include, strip, floor in itertools.product(
        (False, True), ("all", "allButLast", "none", "priorTurns"), ("provider", "off")
    )
]
TOOLS = [{"name": "look_up", "parameters": {"type": "object", "properties": {}}}]
SYSTEM = "Be brief."


@dataclass(frozen=True)
class Reply:
    """One reply: whose, and what is in it."""

    maker: int
    thought: str
    text: str
    calls: int
    reported: int | None


words = st.sampled_from(["So.", "Look: \u00e9\u6f22", "a b  c", "<b>", '{"a": 1}', "100 %"])
replies = st.builds(
    Reply,
    maker=st.integers(0, len(TARGETS) - 1),
    thought=st.sampled_from(["", "Hm.", "One,\ntwo.", "\u6f22\u5b57", "A long thought. " * 9]),
    text=words,
    calls=st.integers(0, 2),
    reported=st.none() | st.integers(0, 60),
)
stories = st.lists(st.lists(replies, min_size=1, max_size=3), min_size=1, max_size=3)
"""Turns of replies; those that call are answered, and the last of a turn does not call."""


def happened(story: Sequence[Sequence[Reply]]) -> tuple[list[rs.Message], dict[str, int]]:
    """Return the history, and what the providers reported for what is under each seal."""
    out: list[rs.Message] = []
    reported: dict[str, int] = {}
    for t, turn in enumerate(story):
        out.append(rs.user(f"Question {t}?"))
        for n, reply in enumerate(turn):
            calls = max(1, reply.calls) if n + 1 < len(turn) else 0
            message = TARGETS[reply.maker].reply(
                f"t{t}r{n}", thought=reply.thought, text=reply.text, calls=calls
            )
            if reply.reported is not None:
                message = replace(message, usage=rs.Usage(reasoning=reply.reported))
                for block in message.thinking:
                    for seal in (block.signature, block.encrypted):
                        reported |= {seal: reply.reported} if seal else {}
            out.append(message)
            out += [
                rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="It is."))
                for call in message.tool_calls
            ]
    return [*out, rs.user("And now?")], reported


def sent_kinds(kinds: rs.results.TokensByKind) -> dict[str, int]:
    """Return the parts that a body holds."""
    return {name: tokens for name, tokens in asdict(kinds).items() if name != "withheld"}


@examples(1_380)
@given(target=st.sampled_from(TARGETS), story=stories, policy=st.sampled_from(POLICIES))
def test_the_count_is_that_of_the_body(
    target: Target, story: list[list[Reply]], policy: dict[str, Any]
) -> None:
    """For every history, policy and protocol, and kind by kind."""
    messages, reported = happened(story)
    built = rs.build_request(
        messages, settings={**target.asks, **policy}, **target.to, system=SYSTEM, tools=TOOLS
    )
    counted = oracle.by_kind(built.body, target.api, system=SYSTEM, tools=TOOLS, reported=reported)

    assert sent_kinds(built.tokens.by_kind) == counted
    assert built.tokens.effective == sum(counted.values())


STORY = [
    [Reply(0, "First.", "So.", 2, None), Reply(3, "Second.", "So.", 0, 40)],
    [Reply(14, "Third.", "Yes.", 0, None)],
    [Reply(2, "Fourth.", "Well.", 1, 7), Reply(20, "Fifth.", "Done.", 0, None)],
]
ASK = """
import json, sys
from dataclasses import asdict
import reasoning_store as rs

path, rows = sys.argv[1], json.load(sys.stdin)
with rs.Store(path) as store:
    session = store.session("chat")
    print(json.dumps([
        asdict(session.usage(settings=settings, **to, system=system, tools=tools).by_kind)
        for to, settings, system, tools in rows
    ]))
"""


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_usage_agrees_in_a_process_that_has_built_nothing(step: int, tmp_path: Path) -> None:
    """From running totals alone, for every target and policy, the same parts."""
    path = f"sqlite:///{tmp_path / 'chat.db'}"
    messages, reported = happened(
        [[replace(r, maker=(r.maker + n) % len(TARGETS)) for r in turn]
         for n in range(0, len(TARGETS), 5) for turn in STORY]
    )  # fmt: skip
    with rs.Store(path) as store:
        store.session("chat", create=True).append(messages)
    rows = [
        (target.to, {**target.asks, **policy}, SYSTEM, TOOLS)
        for target in TARGETS
        for policy in POLICIES
    ][::step]
    ran = subprocess.run(
        [sys.executable, "-c", ASK, path],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=True,
    )
    bodies = [
        rs.build_request(messages, settings=settings, **to, system=system, tools=tools).body
        for to, settings, system, tools in rows
    ]

    kinds = [rs.results.TokensByKind(**row) for row in json.loads(ran.stdout)]
    assert [sent_kinds(one) for one in kinds] == [
        oracle.by_kind(body, to["api"], system=SYSTEM, tools=TOOLS, reported=reported)
        for body, (to, *_) in zip(bodies, rows, strict=True)
    ]


def test_the_oracle_knows_nothing_of_what_it_judges() -> None:
    """It imports the tokenizer, and nothing else of ours."""
    tree = ast.parse(Path(oracle.__file__).read_text("utf-8"))
    reached = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reasoning_store")
    }

    assert reached == {"reasoning_store.tokens"}
    assert not [
        n for n in ast.walk(tree) if isinstance(n, ast.Import) and "reasoning" in ast.dump(n)
    ]
