"""Gemini's generateContent: contents and parts, and the signatures on function calls.

From Gemini 3 on, in the turn that is going on, each step's first function call carries the
signature that it came with, or one of the documented words that skip the check. A turn begins with
a user's content that holds more than function responses. The Gemini API and Vertex refuse each
other's signatures, which only a record can distinguish.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from reasoning_store.testing.strict_provider.rules import (
    BASE64,
    Rule,
    Sent,
    first_unknown,
    is_list,
    is_text,
    matches_pattern,
    numbered_objects,
    value_at,
)

TOP = frozenset(
    "contents systemInstruction tools toolConfig safetySettings generationConfig cachedContent "
    "model labels serviceTier store modelArmorConfig".split()
)
DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse"),
)
BESIDE = (
    *("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"),
    *("mediaProcessing", "audioTranscription", "speechMetadata"),
)
_WORDS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
SKIPPED = (*_WORDS, *(b64encode(word.encode()).decode() for word in _WORDS))
"""The documented stand-in for a lost signature, as text and as bytes."""
LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
LEVELS_OF: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("gemini-2*",), ()),
    (("gemini-3-pro*",), ("LOW", "HIGH")),
    (("gemini-3-*", "gemini-3.[1-6]-flash*"), LEVELS[:4]),
    (("gemini-3.*",), ("LOW", "MEDIUM", "HIGH")),
)
"""The thinking levels of models; the first row that matches counts."""
_FUNCTION_ROLE = ("gemini-1*", "gemini-2*", "gemini-3-*", "gemini-3.[0-5]*")
"""The models that take ``function`` as the role of a tool's response, besides ``user``."""


def structure(sent: Sent) -> str | None:
    body = sent.body
    if name := first_unknown(map(camel, body), TOP):
        return _unknown_name(name, "request")
    contents = body.get("contents")
    if not is_list(contents):
        return "* GenerateContentRequest.contents: contents is not specified"
    assert isinstance(contents, list)
    for n, content in enumerate(contents):
        where = f"contents[{n}]"
        role = value_at(content, "role")
        if role not in ("user", "model") and not (
            role == "function" and sent.is_model(*_FUNCTION_ROLE)
        ):
            return (
                f"Role '{role}' is not supported. Please use a valid role: user, model. ({where})"
            )
        if name := first_unknown(content, ("role", "parts")):
            return _unknown_name(name, where)
        if not is_list(content.get("parts")):
            return f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty."
        for p, part in enumerate(content["parts"]):
            if objection := _part(f"{where}.parts[{p}]", part, role):
                return objection
    return None


def camel(name: str) -> str:
    """Return a field's name as the service writes it; it reads the other spelling as well."""
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _unknown_name(name: str, where: str) -> str:
    return (
        f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field."
    )


def _part(where: str, part: Any, role: str) -> str | None:
    if not isinstance(part, Mapping):
        return f"Invalid value at '{where}'"
    part = {camel(name): value for name, value in part.items()}
    if name := first_unknown(part, (*DATA, *BESIDE)):
        return _unknown_name(name, where)
    if len([name for name in DATA if name in part]) != 1:
        return (
            f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one "
            "initialized field"
        )
    if "text" in part and not isinstance(part["text"], str):
        return f"Invalid value at '{where}.text' (TYPE_STRING)"
    if "thoughtSignature" in part and not is_text(part["thoughtSignature"]):
        return f"Invalid value at '{where}.thought_signature' (TYPE_BYTES)"
    if "functionCall" in part:
        call = part["functionCall"]
        if role != "model" or not matches_pattern(
            r"[a-zA-Z_][a-zA-Z0-9_.:-]*", value_at(call, "name")
        ):
            return f"* GenerateContentRequest.{where}.function_call.name: Invalid function name."
        if not isinstance(call.get("args", {}), Mapping):
            return f"Invalid value at '{where}.function_call.args' (TYPE_STRUCT)"
    if "functionResponse" in part:
        answer = part["functionResponse"]
        if role == "model" or not is_text(value_at(answer, "name")):
            return f"* GenerateContentRequest.{where}.function_response.name: Name cannot be empty."
        if not isinstance(answer.get("response"), Mapping):
            return f"Invalid value at '{where}.function_response.response' (TYPE_STRUCT)"
    return None


def parts(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{camel(name): value for name, value in part.items()} for part in content["parts"]]


def calls(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for part in parts(content) if "functionCall" in part]


def calls_are_answered(sent: Sent) -> str | None:
    """The content after a model's turn has a response for each of its calls.

    Contents of the model that follow each other are one turn; those of a user are not.
    """
    wrong = (
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn."
    )
    due = 0
    contents = sent.body["contents"]
    for n, content in enumerate(contents):
        follows = n > 0 and contents[n - 1]["role"] == content["role"] == "model"
        answers = sum("functionResponse" in part for part in parts(content))
        if answers != (0 if follows else due):
            return f"{wrong} (contents[{n}])"
        due = len(calls(content)) + (due if follows else 0)
        if due and n == 0:
            return (
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
    return wrong if due else None


def signatures_hold(sent: Sent) -> str | None:
    for content in sent.body["contents"]:
        for part in parts(content):
            signature = part.get("thoughtSignature")
            if signature is None or signature in SKIPPED:
                continue
            if not matches_pattern(BASE64, signature):
                return "Corrupted thought signature."
            if sent.record is not None and sent.record.sealed(signature) is None:
                return "Thought signature is not valid."
    return None


def first_calls_are_signed(sent: Sent) -> str | None:
    contents = sent.body["contents"]
    starts = [
        n
        for n, content in enumerate(contents)
        if content["role"] == "user"
        and any("functionResponse" not in part for part in parts(content))
    ]
    for n, content in enumerate(contents[starts[-1] :] if starts else contents):
        for part in calls(content)[:1]:
            if "thoughtSignature" not in part:
                name = part["functionCall"]["name"]
                return (
                    "Function call is missing a thought_signature in functionCall parts. This is "
                    "required for tools to work correctly, and missing thought_signature may lead "
                    f"to degraded model performance. Function call `{name}`, position {n}."
                )
    return None


def thinking_config(sent: Sent) -> str | None:
    config = value_at(sent.body, "generationConfig", "thinkingConfig")
    if config is None:
        return None
    if not isinstance(config, Mapping):
        return "Invalid value at 'generation_config.thinking_config'"
    if name := first_unknown(
        map(camel, config), ("includeThoughts", "thinkingBudget", "thinkingLevel")
    ):
        return _unknown_name(name, "generation_config.thinking_config")
    budget, level = config.get("thinkingBudget"), config.get("thinkingLevel")
    if budget is not None and level is not None:
        return "You can only set only one of thinking budget and thinking level."
    if level is not None and str(level).upper() not in LEVELS:
        return f"Invalid value at 'generation_config.thinking_config.thinking_level': {level}"
    taken = next((found for names, found in LEVELS_OF if sent.is_model(*names)), LEVELS)
    if level is not None and not taken:
        return "Thinking level is not supported for this model."
    if level is not None and str(level).upper() not in taken:
        return f"Thinking level is unsupported: THINKING_LEVEL_{str(level).upper()}"
    if budget is not None and type(budget) is not int:
        return "Invalid value at 'generation_config.thinking_config.thinking_budget' (TYPE_INT32)"
    if budget == 0 and sent.is_model("gemini-2.5-pro*", "gemini-3.5-flash-lite*"):
        return "Budget 0 is invalid. This model only works in thinking mode."
    return None


def tools(sent: Sent) -> str | None:
    for n, tool in numbered_objects(sent.body.get("tools")):
        given = {camel(name): value for name, value in tool.items()}
        for d, declared in numbered_objects(given.get("functionDeclarations")):
            if not is_text(declared.get("name")):
                return (
                    f"* GenerateContentRequest.tools[{n}].function_declarations[{d}].name: "
                    "Invalid function name."
                )
    return None


_SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"

RULES = (
    Rule(
        check=structure,
        source="google-genai SDK types: Content, Part; "
        "github.com/blakeblackshear/frigate/pull/24013: no role of functions from 3.6 on",
    ),
    Rule(check=tools, source="google-genai SDK types: FunctionDeclaration"),
    Rule(
        check=calls_are_answered,
        source="github.com/google-gemini/gemini-cli/issues/16984; "
        "github.com/vertesia/llumiverse/pull/620: split responses are refused",
    ),
    Rule(check=signatures_hold, source=_SIGNATURES),
    Rule(
        check=first_calls_are_signed,
        models=("", "gemini-3*", "gemini-[4-9]*"),
        source=_SIGNATURES,
    ),
    Rule(
        check=thinking_config,
        source="google-genai SDK types: ThinkingConfig; ai.google.dev/gemini-api/docs/thinking; "
        "github.com/tetsuo-ai/agenc-core/pull/2393: levels asked one by one, 2026-09-11; "
        "github.com/maragudk/gai/pull/369: a budget of 0",
    ),
)
