"""Which efforts OpenAI's models take, by their names, and how the others are refused."""

from __future__ import annotations

from reasoning_store.testing.strict_provider.rules import EFFORTS, Sent

_BY_MODEL: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
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
)
"""The first row that matches counts; no efforts: the model does not reason."""
SOURCE = (
    "developers.openai.com/api/docs/models; github.com/openai/codex/issues/6647; "
    "github.com/umputun/tg-spam/issues/304"
)


def objection(sent: Sent, parameter: str, effort: object) -> str | None:
    """Return how a model refuses an effort; ``parameter`` is its path in the body."""
    if effort is None:
        return None
    if effort not in EFFORTS:
        return f"Unsupported value: '{parameter}' does not support {effort!r}."
    taken = next((found for names, found in _BY_MODEL if sent.is_model(*names)), EFFORTS)
    if not taken:
        if parameter == "reasoning_effort":
            return f"Unrecognized request argument supplied: {parameter}"
        return f"Unsupported parameter: '{parameter}' is not supported with this model."
    if effort in taken:
        return None
    listed = ", ".join(f"'{word}'" for word in taken)
    return (
        f"Unsupported value: '{effort}' is not supported with the '{sent.model}' model. "
        f"Supported values are: {listed}."
    )
