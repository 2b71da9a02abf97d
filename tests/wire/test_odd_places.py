"""A value that the protocol does not promise, at any place: nothing is raised, nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.testing import stream
from reasoning_store.wire import registry
from tests.wire.cases import all_cases

ODD: list[Any] = [None, 5, "x", [], {}]
Path = tuple[Any, ...]

PIECES = "aGk="
RARE: dict[str, list[dict[str, Any]]] = {
    "bedrock.converse": [
        {"contentBlockStart": {"contentBlockIndex": place, "start": start}}
        for place, start in enumerate(
            [
                {"image": {"format": "png", "source": {"bytes": PIECES}}},
                {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}},
                {"toolUse": {"toolUseId": "t", "name": "n", "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": "t", "status": "success"}},
                {"toolUse": {"toolUseId": "t", "name": "n", "input": {"a": 1}}},
            ]
        )
    ]
    + [
        {"contentBlockDelta": {"contentBlockIndex": place, "delta": delta}}
        for place, delta in [
            (0, {"image": {"source": {"bytes": PIECES}}}),
            (2, {"toolUse": {"input": "{}"}}),
            (3, {"toolResult": [{"text": "hi"}, {"json": {"x": 1}}]}),
            (5, {"text": "hi"}),
            (5, {"citation": {"title": "t", "location": {"web": {"url": "u"}}}}),
            (6, {"reasoningContent": {"redactedContent": PIECES}}),
        ]
    ]
    + [
        {"messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": {"x": 1}}},
        {"metadata": {"usage": {"inputTokens": 1}, "trace": {"guardrail": {}}}},
        {"throttlingException": {"message": "slow down"}},
    ],
    "gemini.generate_content": [
        {
            "candidates": [
                {
                    "index": 0,
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "a", "thought": True, "thoughtSignature": PIECES},
                            {"functionCall": {"name": "f", "id": "i", "args": {"a": 1}}},
                            {"functionCall": {"name": "f", "willContinue": True}},
                            {
                                "functionCall": {
                                    "partialArgs": [{"jsonPath": "$.a[0].b", "numberValue": 5}],
                                    "willContinue": True,
                                }
                            },
                            {"inlineData": {"mimeType": "image/png", "data": PIECES}},
                            {"fileData": {"mimeType": "video/mp4", "fileUri": "u"}},
                            {"executableCode": {"language": "PYTHON", "code": "1"}},
                        ],
                    },
                    "finishReason": "STOP",
                    "safetyRatings": [{"category": "x"}],
                    "groundingMetadata": {"webSearchQueries": ["q"]},
                    "citationMetadata": {"citations": [{"uri": "u"}]},
                }
            ],
            "promptFeedback": {"blockReason": "SAFETY"},
            "usageMetadata": {"promptTokenCount": 1},
            "responseId": "r",
        },
    ],
}
"""What the recorded streams have none of."""


def streams() -> list[Any]:
    recorded = [
        pytest.param(
            case.provider,
            case.api,
            case.variant["stream"],
            id=f"{case.file}-{case.variant['name']}",
        )
        for case in all_cases()
        if case.variant.get("stream") is not None
    ]
    rare = [pytest.param(None, api, events, id=f"{api}-rare") for api, events in RARE.items()]
    return recorded + rare


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Return the way to every value in an event."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*path, key))


def spoiled(event: Any, path: Path, odd: Any) -> Any:
    event = holder = copy.deepcopy(event)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = copy.deepcopy(odd)
    return event


def unlike(events: list[Any]) -> Iterator[tuple[int, Any]]:
    """Return the events of a stream of which none before has the same places."""
    seen: set[str] = set()
    for number, event in enumerate(events):
        form = json.dumps([list(map(str, path)) for path in places(event)])
        if form not in seen:
            seen.add(form)
            yield number, event


@pytest.mark.parametrize(("provider", "api", "events"), streams())
def test_an_odd_value_at_any_place_raises_nothing(
    provider: str | None, api: str, events: list[Any]
) -> None:
    """Neither where it is read nor where the stream dies just after it; it is unknown once."""
    for number, event in unlike(events):
        for path in places(event):
            for odd in ODD:
                reader = registry.make_reader(model=None, provider=provider, api=api)
                for before in events[:number]:
                    reader.parse_chunk(before)
                found = reader.parse_chunk(spoiled(event, path, odd))
                assert [chunk.type for chunk in found].count("unknown") <= 1
                reader.flush()


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("api", "event", "place"),
    [
        ("gemini.generate_content", {"candidates": []}, ("usageMetadata",)),
        ("gemini.generate_content", {"candidates": []}, ("promptFeedback",)),
        ("cohere.chat", {"type": "message-end", "delta": {}}, ("delta",)),
        ("cohere.chat", {"type": "message-end", "delta": {}}, ("delta", "usage")),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("odd", [5, "x", ["x"]], ids=["number", "string", "list"])
def test_what_is_no_object_where_one_belongs_is_kept(
    api: str, event: dict[str, Any], place: Path, odd: Any
) -> None:
    """As an event that no one understood, with what the place is called."""
    normalizer = rs.StreamNormalizer(api=api)
    for good in stream(rs.assistant("Yes"), api=api):
        normalizer.feed(good)
    normalizer.feed(spoiled(event, place, odd))

    message = normalizer.finish()

    assert (message.metadata or {})["unknownEvents"] == [{place[-1]: odd}]


@pytest.mark.parametrize("form", [{"format": "png"}, {}], ids=["png", "no format yet"])
def test_an_image_of_bedrock_whose_bytes_are_none_is_kept_aside(form: dict[str, str]) -> None:
    """At once: neither its end nor that of a dying stream has to say it."""
    image = {**form, "source": {"bytes": 5}}
    opened = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"image": image}}}
    delta = {"contentBlockIndex": 0, "delta": {"image": {"format": "png"}}}
    normalizer = rs.StreamNormalizer(api="bedrock.converse")
    for event in (opened, {"contentBlockDelta": delta}):
        normalizer.feed(event)

    message = normalizer.finish(interrupted=True)

    assert message.blocks == ()
    assert (message.metadata or {})["unknownEvents"][0] == opened


def test_the_deep_input_of_a_hosted_tool_of_bedrock_raises_nothing() -> None:
    """It can be parsed, and is deeper than can be walked through."""
    use = {"toolUseId": "t", "name": "n", "type": "server_tool_use"}
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}},
        {
            "contentBlockDelta": {
                "contentBlockIndex": 0,
                "delta": {"toolUse": {"input": codec.dumps(deep(700))}},
            }
        },
    ]
    normalizer = rs.StreamNormalizer(api="bedrock.converse")
    for event in events:
        normalizer.feed(event)

    assert [block.type for block in normalizer.finish(interrupted=True).blocks] == ["raw"]
