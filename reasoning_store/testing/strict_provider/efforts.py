"""Which efforts the models of OpenAI and xAI take, by their names, and how others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from reasoning_store.testing.strict_provider.rules import EFFORTS, Rule, Sent, host_names, value_at

Rows: TypeAlias = Sequence[tuple[Sequence[str], Sequence[str]]]

_OPENAI: Rows = (
    (("gpt-3*", "gpt-4*", "ft:gpt-[34]*", "chatgpt*", "gpt-5*chat*", "gpt-audio*"), ()),
    (("o1-mini*", "o1-preview*"), ()),
    (("gpt-5-pro*",), ("high",)),
    (("gpt-5.[2-9]*-pro*",), ("medium", "high", "xhigh")),
    (("gpt-5.[2-9]*-codex*", "gpt-5.1-codex-max*"), ("low", "medium", "high", "xhigh")),
    (("gpt-5*-codex*", "codex*", "o1*", "o3*", "o4*"), ("low", "medium", "high")),
    (("gpt-5", "gpt-5-*"), ("minimal", "low", "medium", "high")),
    (("gpt-5.1*",), ("none", "low", "medium", "high")),
    (("gpt-5.[2-5]*",), ("none", "low", "medium", "high", "xhigh")),
    (("gpt-5.6*",), ("none", "low", "medium", "high", "xhigh", "max")),
    (
        ("gpt-6-sol*", "gpt-6-luna*", "gpt-6.1-terra*"),
        ("none", "low", "medium", "high", "xhigh", "max"),
    ),
    (("gpt-6*",), ("low", "medium", "high", "xhigh", "max")),
)
"""The first row that matches counts; no efforts: the model does not reason."""
_XAI: Rows = (
    (("grok-2*", "grok-3", "grok-3-fast*", "grok-4", "grok-4-*", "grok-code*"), ()),
    (("grok-4.1-fast*", "grok-4.20-*reasoning*"), ()),
    (("grok-3-mini*",), ("low", "high")),
    (("grok-4.3*", "grok-latest"), ("none", "low", "medium", "high")),
    (("grok-4.5*",), ("low", "medium", "high")),
    (("grok-4.[67]*",), ("low", "medium", "high", "xhigh")),
    (("*",), ("low", "medium", "high")),
)
SOURCE = (
    "developers.openai.com/api/docs/models, .../guides/latest-model, "
    ".../guides/deployment-checklist; github.com/openai/codex/issues/6647; "
    "github.com/umputun/tg-spam/issues/304; github.com/BerriAI/litellm-docs/pull/1173: "
    "max in Responses alone; github.com/livekit/agents/pull/7169: gpt-5.6"
)
_RESPONSES_ONLY = {"gpt-5.6*": "max", "gpt-6*": "max"}
"""The efforts that models take in Responses and not in Chat Completions."""


def objection(sent: Sent, parameter: str, effort: object) -> str | None:
    """Return how a model refuses an effort; ``parameter`` is its path in the body."""
    if effort is None:
        return None
    if effort not in EFFORTS:
        return f"Unsupported value: '{parameter}' does not support {effort!r}."
    rows = _XAI if sent.provider == "xai" else _OPENAI
    taken = next((found for names, found in rows if sent.is_model(*names)), EFFORTS)
    if not taken and sent.provider == "xai":
        return f"Model {sent.model} does not support parameter reasoningEffort."
    if not taken:
        if parameter == "reasoning_effort":
            return f"Unrecognized request argument supplied: {parameter}"
        return f"Unsupported parameter: '{parameter}' is not supported with this model."
    if parameter == "reasoning_effort":
        left = [word for name, word in _RESPONSES_ONLY.items() if sent.is_model(name)]
        taken = [word for word in taken if word not in left]
    if effort in taken:
        return None
    listed = ", ".join(f"'{word}'" for word in taken)
    return (
        f"Unsupported value: '{effort}' is not supported with the '{sent.model}' model. "
        f"Supported values are: {listed}."
    )


def _effort(sent: Sent) -> str | None:
    parameter = "reasoning.effort" if "input" in sent.body else "reasoning_effort"
    return objection(sent, parameter, value_at(sent.body, *parameter.split(".")))


RULES = (
    Rule(check=_effort, providers=host_names("openai azure"), source=SOURCE),
    Rule(
        check=_effort,
        providers=host_names("xai"),
        source="docs.x.ai/docs/guides/reasoning; github.com/mnfst/modelparams.dev/pull/330; "
        "@ai-sdk/xai 4.0.0-canary.61: grok-4.3; github.com/farion1231/cc-switch/issues/7584",
    ),
)
