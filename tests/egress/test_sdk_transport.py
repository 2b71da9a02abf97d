"""What the official clients send is the body, byte for byte as JSON.

Each row names a protocol, whom to ask, and how the official client is made with a transport
that records; every history and every choice of parameters is sent through each.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import reasoning_store as rs
from tests.egress.histories import EVERYTHING, OPEN_LOOP, TWO_TURNS
from tests.properties import each

Send = Callable[[Mapping[str, Any]], bytes]
"""Makes the client's call with a request's kwargs and returns the HTTP request's body."""


class Recorded(Exception):
    """The transport has seen the request; there is no answer."""


def recording(httpx: Any, seen: list[bytes]) -> Any:
    """Return a client of httpx, or of its successor, that keeps what it is given to send."""

    def handler(request: Any) -> Any:
        seen.append(request.read())
        raise Recorded

    return httpx.Client(transport=httpx.MockTransport(handler))


def sends(make: Callable[[list[bytes]], Callable[..., Any]]) -> Send:
    seen: list[bytes] = []

    @cache
    def call() -> Callable[..., Any]:
        with _without_proxies():
            return make(seen)

    def send(kwargs: Mapping[str, Any]) -> bytes:
        seen.clear()
        try:
            call()(**kwargs)
        except Exception:  # each client has an error of its own for no answer
            assert seen
        (body,) = seen
        return body

    return send


@contextmanager
def _without_proxies() -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in list(os.environ) if "proxy" in name.lower()}
    try:
        yield
    finally:
        os.environ.update(kept)


def openai_chat(seen: list[bytes]) -> Callable[..., Any]:
    import httpx2
    from openai import OpenAI

    client = OpenAI(api_key="k", http_client=recording(httpx2, seen), max_retries=0)
    create: Callable[..., Any] = client.chat.completions.create
    return create


def mistral_chat(seen: list[bytes]) -> Callable[..., Any]:
    import httpx2
    from mistralai.client import Mistral

    return Mistral(api_key="k", client=recording(httpx2, seen)).chat.complete


def ollama_chat(seen: list[bytes]) -> Callable[..., Any]:
    import httpx
    from ollama import Client

    client = Client()
    client._client = recording(httpx, seen)
    client._client.base_url = "http://localhost"
    return client.chat


def cohere_chat(seen: list[bytes]) -> Callable[..., Any]:
    import httpx
    from cohere import ClientV2

    return ClientV2(api_key="k", httpx_client=recording(httpx, seen)).chat


def openai_responses(seen: list[bytes]) -> Callable[..., Any]:
    import httpx2
    from openai import OpenAI

    client = OpenAI(api_key="k", http_client=recording(httpx2, seen), max_retries=0)
    create: Callable[..., Any] = client.responses.create
    return create


def anthropic_messages(
    name: str = "Anthropic", **about: str
) -> Callable[[list[bytes]], Callable[..., Any]]:
    """Return how one of the SDK's clients is made: each is for another host."""

    def make(seen: list[bytes]) -> Callable[..., Any]:
        import anthropic
        from anthropic import DefaultHttpxClient

        # Whichever of the two clients of httpx this SDK is built on.
        httpx = __import__(DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
        given = about or {"api_key": "k"}
        client = getattr(anthropic, name)(
            http_client=recording(httpx, seen), max_retries=0, **given
        )
        create: Callable[..., Any] = client.messages.create
        return create

    return make


def gemini_generate_content(seen: list[bytes]) -> Callable[..., Any]:
    import httpx
    from google import genai

    options = genai.types.HttpOptions(httpx_client=recording(httpx, seen))
    return genai.Client(api_key="k", http_options=options).models.generate_content


def bedrock_converse(seen: list[bytes]) -> Callable[..., Any]:
    # botocore has no types of its own.
    from botocore.session import Session  # type: ignore[import-untyped]

    session = Session()
    session.set_credentials("id", "secret")
    client = session.create_client("bedrock-runtime", region_name="eu-north-1")

    def handler(request: Any, **about: Any) -> Any:
        seen.append(request.body)
        raise Recorded

    client.meta.events.register("before-send.bedrock-runtime.Converse", handler)
    converse: Callable[..., Any] = client.converse
    return converse


@dataclass(frozen=True)
class Row:
    """One protocol, one provider of it, one of its models."""

    provider: str | None
    model: str
    send: Send
    api: str | None = None


ROWS = [
    *(
        Row(provider, model, sends(openai_chat), "openai.chat")
        for provider, model in (
            ("openai", "gpt-5.6"),
            ("deepseek", "deepseek-v4"),
            ("moonshot", "kimi-k2.6"),
            ("openrouter", "anthropic/claude-opus-5"),
            ("minimax", "minimax-m2"),
            ("alibaba", "qwen4-max"),
            ("google", "gemini-3-pro"),
            ("vllm", "qwen3"),
            ("cerebras", "zai-glm-4.7"),
            (None, "some-model"),
        )
    ),
    Row("mistral", "mistral-medium-3.5", sends(mistral_chat)),
    Row("mistral", "magistral-medium", sends(mistral_chat)),
    Row("ollama", "qwen3", sends(ollama_chat)),
    Row("ollama", "gpt-oss:20b", sends(ollama_chat)),
    Row("cohere", "command-a-reasoning", sends(cohere_chat)),
    *(
        Row("openai", model, sends(openai_responses), "openai.responses")
        for model in ("gpt-5.6", "gpt-4o")
    ),
    *(
        Row("anthropic", model, sends(anthropic_messages()))
        for model in ("claude-opus-5-5", "claude-opus-4-7", "claude-haiku-4-5")
    ),
    *(
        Row(provider, model, sends(anthropic_messages(client, **about)), "anthropic.messages")
        for provider, model, client, about in (
            (
                "vertex",
                "claude-sonnet-4-5@20250929",
                "AnthropicVertex",
                {"region": "eu", "project_id": "p", "access_token": "t"},
            ),
            (
                "aws",
                "anthropic.claude-opus-5",
                "AnthropicBedrockMantle",
                {"aws_region": "eu-north-1", "api_key": "k"},
            ),
            ("azure", "claude-opus-5", "AnthropicFoundry", {"resource": "r", "api_key": "k"}),
        )
    ),
    *(
        Row("google", model, sends(gemini_generate_content))
        for model in ("gemini-3.8-flash", "gemini-2.5-flash")
    ),
    *(
        Row("aws", model, sends(bedrock_converse))
        for model in ("us.anthropic.claude-opus-4-6-v1:0", "openai.gpt-oss-120b-1:0")
    ),
]

TOOL = {
    "name": "get_weather",
    "description": "The weather now.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Which city."}},
        "required": ["city"],
    },
}
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgAAIAAAUAAen6")
PICTURE = rs.user("What is this?", rs.MediaBlock(kind="image", mime_type="image/png", data=PNG))


@each("row", ROWS)
@each("messages", [TWO_TURNS, OPEN_LOOP, EVERYTHING, (*TWO_TURNS, PICTURE)])
@each(
    "settings",
    [
        {},
        {"reasoning.includeInContext": True, "reasoning.effort": "high"},
        {"reasoning.enabled": True, "reasoning.budgetTokens": 2048},
        {"reasoning.enabled": False, "reasoning.floor": "off"},
    ],
    thinned=4,
)
def test_what_the_official_client_sends_is_the_body(
    row: Row, messages: tuple[rs.Message, ...], settings: dict[str, Any]
) -> None:
    """kwargs and body say the same, to the last key."""
    request = rs.build_request(
        messages,
        settings=settings,
        provider=row.provider,
        model=row.model,
        api=row.api,
        system="Be brief.",
        tools=[TOOL],
    )

    assert json.loads(row.send(request.kwargs)) == request.body


@each("row", ROWS)
def test_a_request_with_a_single_message_is_sent_unchanged(row: Row) -> None:
    """No tools, no system, no parameters: nothing is added to it."""
    request = rs.build_request(
        [rs.user("Hello")], provider=row.provider, model=row.model, api=row.api
    )

    assert json.loads(row.send(request.kwargs)) == request.body
