"""Each row of contracts.toml: what a request foretells is what the strict provider answers.

The judge knows nothing of the rows. A model's name is made of a pattern that a row has for it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args

import reasoning_store as rs
from reasoning_store.conversation.settings import Effort
from reasoning_store.testing import refusal
from reasoning_store.wire import contract_lookup
from tests.egress.targets import TARGETS, Target, plain
from tests.egress.turns import FORETOLD, OFF, TOOLS, remembered, shapes
from tests.properties import each
from tests.wire import row_by_row

ASKED: list[dict[str, Any]] = [
    {},
    {"reasoning.enabled": False},
    {"reasoning.enabled": True},
    *({"reasoning.effort": effort} for effort in get_args(Effort)),
    {"reasoning.budgetTokens": 2_048},
]
POLICIES: list[dict[str, Any]] = [
    {},
    {"reasoning.includeInContext": True},
    {"reasoning.stripFromContext": "all"},
]
WHOLE = {
    "k3": "kimi-k3",
    "gemini": "gemini-3.1-pro-preview",
    "gemini-3.1": "gemini-3.1-flash-lite",
    "gemini-3.1flash": "gemini-3.1-flash-lite",
    "google/gemini": "google/gemini-3.1-pro-preview",
}
"""Patterns that need more than their own text to be a name."""


def names(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield a name for each pattern of a row; one that nothing knows where it has none."""
    for pattern in row.get("models", ["some-model"]):
        name = re.sub(r"\[(.).*?\]", r"\1", re.sub(r"\[!.*?\]", "-", pattern)).replace("*", "")
        yield WHOLE.get(name, name)


def places() -> dict[str, Target]:
    """Return whom each row is for; it answers as another model of its host does."""
    answering = {(one.provider, one.api): one for one in reversed(TARGETS)}
    tables = row_by_row.read()
    found = {}
    for row in (*tables["contract"], *tables["model"]):
        providers = row.get("providers", [row.get("provider")])
        apis = row.get("apis", [row.get("api")])
        for provider, api, model in itertools.product(providers, apis, names(row)):
            if contract_lookup.speaks_api(provider, model, api):
                like = answering.get((provider, api))
                target = Target(provider, model, api, plain("reasoning_content"))
                if like is not None:
                    target = replace(target, think=like.think, call_metadata=like.call_metadata)
                found[str(target)] = target
    return found


PLACES = places()
CAUTIOUS = {"deepseek deepseek-chat openai.chat"}
"""A refusal is foretold of the whole host; this model was recorded to take the request."""


def answered(target: Target, request: rs.Request, history: list[rs.Message]) -> str | None:
    return refusal(
        request.body,
        provider=target.provider or "",
        model=target.model,
        api=target.api,
        record=remembered(history, target),
    )


@each("place", PLACES)
def test_whatever_is_asked_of_a_model_is_accepted(place: str) -> None:
    """With tools and without: what it does not take is left out, or a warning foretells it."""
    target = PLACES[place]
    for settings, tools in itertools.product(ASKED, (None, TOOLS)):
        request = rs.build_request([rs.user("Hi")], settings=settings, tools=tools, **target.to)
        foretold = any(str(warning.code) == "needs_responses" for warning in request.warnings)
        said = answered(target, request, [])

        assert (said is not None) == foretold, (settings, said)


@each("place", PLACES, thinned=4)
def test_a_refusal_is_foretold_wherever_there_is_one_and_nowhere_else(place: str) -> None:
    """By ``what_if`` and by a warning, however the turns ended and whatever is left out."""
    target = PLACES[place]
    for name, history in shapes(target):
        for policy, floor in itertools.product(POLICIES, ({}, OFF)):
            settings = {**policy, **floor}
            legal = rs.what_if(history, settings=settings, **target.to).current.legal
            request = rs.build_request(history, settings=settings, tools=TOOLS, **target.to)
            said = answered(target, request, history)
            codes = {str(warning.code) for warning in request.warnings}
            refused = not legal or "needs_responses" in codes

            assert place in CAUTIOUS or refused == (said is not None), (name, settings, said)
            assert said is None or codes & {*FORETOLD, "needs_responses"}, (name, settings, said)
