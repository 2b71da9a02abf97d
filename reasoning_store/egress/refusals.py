"""Explanations of refusals: the cause of a provider's error, and the setting that mends it.

``refusals.toml`` holds the errors of providers about a request's reasoning, tool calls or
length. A row is found by a part of the text, compared without quotes, case and repeated spaces,
because services vary the wording. Rows of the named provider come first. All others follow,
because a gateway passes another provider's error on, except those whose words are too common.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.egress.compaction_plan import StepKind
from reasoning_store.wire import contract_lookup

Act: TypeAlias = Literal["block", "seal", "media", "text", "resend", "ids", "none"]
"""The way back of a refused request: a part is left out, a thought is sent again, or neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The cause of a refusal, its remedy, and the settings for it, if there are any."""

    cause: str
    fix: str
    settings: tuple[str, ...] = ()
    """The settings that mend it, all of them together."""
    steps: tuple[StepKind, ...] = ()
    """The steps of ``session.compression`` that help, the cheapest first."""
    act: Act = "none"
    """The way in which the request comes back; ``session.recover`` takes it."""

    def __str__(self) -> str:
        together = f" ({', '.join(self.settings)})" if self.settings else ""
        return f"{self.cause}; {self.fix}{together}"


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: re.Pattern[str]
    providers: frozenset[str]
    explanation: Explanation
    common: bool
    """The words are in too many errors to explain one of a known host that is not listed."""


def explain_refusal(provider: str | None, error_text: str) -> Explanation | None:
    """Return the explanation of a refusal; ``None`` for one that is not known."""
    if not isinstance(error_text, str):
        raise InvalidCall(
            f"error_text must be a string, not {type(error_text).__name__}",
            hint="pass the text of the provider's error, e.g. str(error)",
        )
    known = contract_lookup.provider_id(provider) if isinstance(provider, str) else None
    text = _fold_text(error_text)
    for row in sorted(_refusal_rows(), key=lambda row: known not in row.providers):
        if row.common and known is not None and known not in row.providers:
            continue
        if row.pattern.search(text):
            return row.explanation
    return None


@cache
def _refusal_rows() -> tuple[_Row, ...]:
    text = files("reasoning_store.egress").joinpath("refusals.toml").read_text(encoding="utf-8")
    return tuple(_refusal_row(**row) for row in tomllib.loads(text)["refusal"])


def _refusal_row(
    patterns: Sequence[str],
    providers: Sequence[str],
    common: bool = False,
    steps: Sequence[StepKind] = (),
    settings: Sequence[str] = (),
    **texts: Any,
) -> _Row:
    explanation = Explanation(steps=tuple(steps), settings=tuple(settings), **texts)
    return _Row(re.compile("|".join(patterns)), frozenset(providers), explanation, common)


def _fold_text(text: str) -> str:
    """Return a text without quotes, case and long spaces, for comparison."""
    return " ".join(re.sub(r"[`'\"\u2018\u2019\u201c\u201d\\]", "", text).lower().split())
