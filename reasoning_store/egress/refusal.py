"""What a provider's refusal means, and what mends it.

A table of what providers are known to answer when a request's reasoning, or what goes with
it, is not as they demand. A row is found by a part of the text, read without quotes, case
and repeated spaces, for services word one refusal in several ways. Rows of the provider
that was asked come first; a gateway hands on what another one said, so all others follow,
but for those whose words are in too many errors.

It knows words. It must not see a conversation, and says nothing of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reasoning_store.errors import UsageError
from reasoning_store.wire import contracts


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a request was refused, what mends it, and the setting that does, if there is one."""

    cause: str
    fix: str
    setting: str | None = None

    def __str__(self) -> str:
        return f"{self.cause}; {self.fix}" + (f" ({self.setting})" if self.setting else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    said: str
    """A part of the error's text; ``|`` stands between several."""
    providers: tuple[str, ...]
    explains: Explanation
    alone: bool = True
    """Whether the words tell what happened whoever says them."""


_FLOOR: Final = "reasoning.floor=provider"
_STRIP: Final = "reasoning.stripFromContext=all"
_ON: Final = "reasoning.enabled=true"
_RESPONSES = ("openai", "azure", "xai")
_CLAUDE = ("anthropic", "aws", "azure", "vertex")
_GEMINI = ("google", "vertex")

_MISSING_FIELD = Explanation(
    cause="a message with a tool call lacks the reasoning that led to it",
    fix="send the stored reasoning back, or the field empty where there is none",
    setting=_FLOOR,
)
_FOREIGN_SEAL = Explanation(
    cause="a thought signature of another route, model or key",
    fix="name provider, model and base URL of each reply, so that foreign signatures stay out",
    setting=_STRIP,
)

_ROWS: Final = (
    _Row(
        said="of type reasoning was provided without its required following item",
        providers=_RESPONSES,
        explains=Explanation(
            cause="a reasoning item was sent without the message or call that it produced",
            fix="keep the two adjacent and in order, or leave both the item and the ids out",
            setting=_STRIP,
        ),
    ),
    _Row(
        said="was provided without its required reasoning item",
        providers=_RESPONSES,
        explains=Explanation(
            cause="an item was sent by its server's id, and its reasoning item was not",
            fix="leave the id out and keep call_id, or send the reasoning item with it",
            setting=_FLOOR,
        ),
    ),
    _Row(
        said="items are not persisted when store is set to false",
        providers=_RESPONSES,
        explains=Explanation(
            cause="an item was named by its id to a server that keeps nothing",
            fix="send its encrypted_content, which has to be asked for with the reply",
        ),
    ),
    _Row(
        said="invalid_encrypted_content",
        providers=_RESPONSES,
        explains=Explanation(
            cause="encrypted reasoning of another organisation, endpoint or model",
            fix="name provider, model and base URL of each reply, so that foreign items stay out",
            setting=_STRIP,
        ),
    ),
    _Row(
        said="the block is bound to a different conversation",
        providers=_CLAUDE,
        explains=Explanation(
            cause="what stands before a thinking block is not what it was made behind: system, "
            "tools, an earlier message, or thinking that was left out between others",
            fix="change nothing before it, or let the server drop it "
            "(block_binding.prefix_mismatch_behavior=drop_block), or send no thinking",
            setting=_STRIP,
        ),
    ),
    _Row(
        said="invalid signature in thinking block",
        providers=_CLAUDE,
        explains=Explanation(
            cause="a thinking block was edited, or its signature is cut or another's",
            fix="leave out the thinking of that turn",
            setting=_STRIP,
        ),
    ),
    _Row(
        said="expected thinking or redacted_thinking, but found",
        providers=_CLAUDE,
        explains=Explanation(
            cause="an open tool loop was sent without the thinking it began with",
            fix="send the blocks back, or switch thinking off for the request",
            setting=_FLOOR,
        ),
    ),
    _Row(
        said="when thinking is disabled, an assistant message",
        providers=_CLAUDE,
        explains=Explanation(
            cause="thinking is off, and the open turn carries some",
            fix="leave it on until the turn ends, or leave the thinking out",
            setting=_ON,
        ),
    ),
    _Row(
        said="thinking.type.disabled is not supported for this model",
        providers=_CLAUDE,
        explains=Explanation(
            cause="the model always thinks",
            fix="say nothing of thinking and choose a low effort",
            setting="reasoning.effort=low",
        ),
    ),
    _Row(
        said="thinking.type.enabled is not supported for this model",
        providers=_CLAUDE,
        explains=Explanation(
            cause="the model takes no budget of thinking",
            fix="ask for adaptive thinking, and for an effort instead of a budget",
            setting="reasoning.effort",
        ),
    ),
    _Row(
        said="reasoning_content in the thinking mode must be passed back",
        providers=("deepseek",),
        explains=_MISSING_FIELD,
    ),
    _Row(
        said="content[].thinking in the thinking mode must be passed back",
        providers=("deepseek",),
        explains=_MISSING_FIELD,
    ),
    _Row(
        said="missing reasoning_content field in the assistant message",
        providers=("deepseek",),
        explains=_MISSING_FIELD,
    ),
    _Row(
        said="reasoning_content is missing in assistant",
        providers=("moonshot",),
        explains=_MISSING_FIELD,
    ),
    _Row(
        said="is missing a thought_signature",
        providers=_GEMINI,
        explains=Explanation(
            cause="the first call of a step in the open turn has lost its signature",
            fix="send the part back as it came, or the documented placeholder in its place",
            setting=_FLOOR,
        ),
    ),
    _Row(
        said="corrupted thought signature|invalid thought signature|thought signature is not valid",
        providers=_GEMINI,
        explains=_FOREIGN_SEAL,
    ),
    _Row(
        said="requires adaptive thinking",
        providers=("minimax",),
        explains=Explanation(
            cause="the model cannot stop thinking",
            fix="ask for adaptive thinking, or say nothing",
            setting=_ON,
        ),
    ),
    _Row(
        said="only one of reasoning.effort and reasoning.max_tokens",
        providers=("openrouter",),
        explains=Explanation(
            cause="effort and budget were both said",
            fix="set one of the two",
            setting="reasoning.budgetTokens",
        ),
    ),
    _Row(
        said="unexpected role user after role tool",
        providers=("mistral",),
        explains=Explanation(
            cause="a user spoke before the model had taken up what a tool answered",
            fix="send a reply of the model between them, as requests built here do",
        ),
    ),
    _Row(
        said="must be followed by tool messages responding to each tool_call_id"
        "|tool_use ids were found without tool_result blocks",
        providers=("openai", *_CLAUDE),
        explains=Explanation(
            cause="a tool call has no response behind it",
            fix="append the response, or an error; requests built here put one there",
        ),
    ),
    _Row(
        said="reasoning_details",
        providers=("openrouter", "vercel"),
        explains=Explanation(
            cause="reasoning_details are not as they came: fragments of a stream that were not "
            "merged, or entries in another order",
            fix="merge fragments of one type and index, and send the array whole",
            setting=_FLOOR,
        ),
        alone=False,
    ),
    _Row(
        said="reasoning_content",
        providers=("cerebras", "groq", "openai", "azure"),
        explains=Explanation(
            cause="the provider knows no such field of a message",
            fix="name the provider, so that its reasoning goes where it is read",
            setting=_STRIP,
        ),
        alone=False,
    ),
)


def explain_refusal(provider: str | None, error_text: str) -> Explanation | None:
    """Return what a refusal means and what mends it; ``None`` for one that is not known."""
    if not isinstance(error_text, str):
        raise UsageError(
            f"error_text is a string, not {type(error_text).__name__}",
            hint="pass the text of the provider's answer, e.g. str(error)",
        )
    known = contracts.provider_id(provider) if isinstance(provider, str) else None
    text = _folded(error_text)
    for row in sorted(_ROWS, key=lambda row: known not in row.providers):
        if not row.alone and known is not None and known not in row.providers:
            continue
        if any(_folded(part) in text for part in row.said.split("|")):
            return row.explains
    return None


def _folded(text: str) -> str:
    """Return a text as it is compared: without quotes of any kind, case and long spaces."""
    return " ".join(re.sub(r"[`'\"\u2018\u2019\u201c\u201d\\]", "", text).lower().split())
