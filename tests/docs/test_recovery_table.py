"""The table of refusals in the documentation is what happens to each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import refusal
from tests.egress.targets import Target, named_call, plain, sealed_call, signed, summary
from tests.egress.turns import a_turn

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "recover-a-refused-conversation.md"
STEPS = 6
CLAUDE = Target("anthropic", "claude-opus-5", "anthropic.messages", signed)
BINDS = Target("anthropic", "claude-opus-5-5", "anthropic.messages", signed)
RESPONSES = Target("openai", "gpt-5.6", "openai.responses", summary, call_metadata=named_call)
GEMINI = Target(
    "google", "gemini-3-pro", "gemini.generate_content", plain("thought"), call_metadata=sealed_call
)
DEEPSEEK = Target("deepseek", "deepseek-v4", "openai.chat", plain("reasoning_content"))
KIMI = Target("moonshot", "kimi-k2.6", "openai.chat", plain("reasoning_content"))


@dataclass(frozen=True)
class Case:
    """A refusal of a loop, and the host that answers with it."""

    target: Target
    bad: str
    """What of the body the host refuses; empty: what a strict provider refuses."""
    text: str = ""
    """The text that it answers with: ``{at}`` is the index of the message."""
    settings: dict[str, Any] = field(default_factory=dict)
    more: tuple[rs.Block, ...] = ()

    def refusal(self, request: rs.Request) -> str | None:
        if not self.bad:
            return refusal(request.body, **self.target.to)
        listed = next(
            request.body[k] for k in ("messages", "input", "contents") if k in request.body
        )
        found = [n for n, item in enumerate(listed) if self.bad in str(item)]
        return self.text.format(at=found[0]) if found else None


IMAGE = rs.MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG bad")
OFF = {"reasoning.floor": "off"}


def seal_of(target: Target) -> str:
    """Return the seal of the second thought of a loop, or of its first call."""
    (reply,) = [one for one in a_turn(target, "loop", steps=2) if one.tool_calls][1:2]
    for block in reply.thinking:
        if found := block.signature or block.encrypted:
            return found
    return str((reply.tool_calls[0].provider_metadata or {})["thoughtSignature"])


CASES: dict[str, Case] = {
    "Invalid `signature` in `thinking` block": Case(
        CLAUDE, seal_of(CLAUDE), "messages.{at}.content.0: Invalid `signature` in `thinking` block"
    ),
    "The block is bound to a different conversation": Case(
        BINDS,
        seal_of(BINDS),
        "messages.{at}.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation.",
    ),
    "blocks in the latest assistant message cannot be modified": Case(
        CLAUDE,
        seal_of(CLAUDE),
        "messages.{at}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified.",
    ),
    "encrypted content could not be verified": Case(
        RESPONSES,
        seal_of(RESPONSES),
        f"The encrypted content gAAA...{seal_of(RESPONSES)[-8:]} could not be verified.",
    ),
    "of type 'reasoning' was provided without its required following item": Case(
        RESPONSES,
        seal_of(RESPONSES),
        "Item 'rs_loop_1' of type 'reasoning' was provided without its required following item.",
    ),
    "Corrupted thought signature": Case(GEMINI, seal_of(GEMINI), "Corrupted thought signature."),
    "image dimensions exceed max allowed size": Case(
        CLAUDE,
        "iVBORyBiYWQ",
        "messages.{at}.content.1.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size: 8000 pixels",
        more=(IMAGE,),
    ),
    "Could not process image": Case(
        CLAUDE, "iVBORyBiYWQ", "Could not process image", more=(IMAGE,)
    ),
    "reasoning_content in the thinking mode must be passed back": Case(DEEPSEEK, "", settings=OFF),
    "reasoning_content is missing in assistant tool call message": Case(KIMI, "", settings=OFF),
}


def told(name: str, case: Case) -> str:
    """Return the line of the table, by what happens."""
    with rs.Store("sqlite://") as store:
        session = store.session(create=True)
        question, *rest = a_turn(case.target, "loop", steps=STEPS, ends=False)
        session.append([rs.user(*question.blocks, *case.more), *rest])
        settings = {**case.target.asks, **case.settings}
        first = request = session.build_request(**case.target.to, settings=settings)
        left_out: list[rs.results.Withheld] = []
        retries, named, act = 0, True, ""
        while (said := case.refusal(request)) is not None:
            found = session.recover(said, request)
            assert found.request is not None, found.reason
            request, retries = found.request, retries + 1
            named, act = named and found.is_certain, found.act
            left_out += found.withheld
        for one in left_out:
            session.undo(one.id)
        again = session.build_request(**case.target.to, settings=settings)
        cells = (
            f"`` {name} ``",
            act,
            "yes" if named else "no",
            len(left_out),
            retries,
            "yes" if again.body == first.body else "no",
        )
    return "| " + " | ".join(map(str, cells)) + " |"


def test_the_table_says_what_happens_to_each_refusal() -> None:
    """Named or not, how many blocks are left out, how often it is sent again, and undo."""
    page = PAGE.read_text("utf-8")
    lines = [told(name, case) for name, case in CASES.items()]

    assert [line for line in lines if line not in page] == []
