"""Every row of contracts.toml that ingress reads is held by something that an application sees.

``broken(tables)`` says which expectations do not hold with these tables. With all rows it is
none; with one row deleted it has to be at least one, or the row could be wrong and no one
would know. Run as a script it deletes row by row:

    python -m tests.wire.row_by_row

A row that leaves ingress as it is, because only egress reads it, is not asked for here.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any

import pytest

from reasoning_store.conversation.chunks import ReasoningChunk, UsageChunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup, contract_tables
from reasoning_store.wire.contract_lookup import mirrored_fields

Tables = dict[str, Any]

ALIASES = {
    "anthropic": "claude",
    "aws": "bedrock amazon-bedrock",
    "alibaba": "qwen dashscope",
    "azure": "azure-openai azure_openai",
    "cerebras": "",
    "cloudflare": "workers-ai",
    "cohere": "",
    "deepseek": "",
    "fireworks": "fireworks_ai",
    "github-copilot": "copilot github_copilot",
    "google": "gemini",
    "groq": "",
    "litellm": "litellm_proxy",
    "llama.cpp": "llamacpp llama-cpp",
    "lmstudio": "lm-studio lm_studio",
    "minimax": "",
    "mistral": "mistralai",
    "moonshot": "moonshotai kimi",
    "novita": "novita-ai",
    "ollama": "",
    "openai": "",
    "openrouter": "",
    "sglang": "",
    "snowflake": "cortex",
    "tencent": "tokenhub",
    "together": "together_ai",
    "vercel": "ai-gateway",
    "vercel-ai-sdk": "ai-sdk",
    "vertex": "vertexai vertex_ai",
    "vllm": "hosted_vllm",
    "xai": "x.ai grok",
    "zai": "glm z.ai zhipu",
}
"""A provider's own name, and names under which applications know it."""

OWN_API = {
    "anthropic": "anthropic.messages",
    "aws": "bedrock.converse",
    "cohere": "cohere.chat",
    "google": "gemini.generate_content",
    "mistral": "mistral.chat",
    "ollama": "ollama.chat",
    "vercel-ai-sdk": "thinking_events",
    "vertex": "gemini.generate_content",
}
"""The providers whose usual protocol is not Chat Completions."""

ADDRESSES = {
    "https://api.openai.com/v1": "openai",
    "https://eu.api.openai.com/v1": "openai",
    "https://my-resource.openai.azure.com/openai/v1": "azure",
    "https://my-resource.services.ai.azure.com/openai/v1": "azure",
    "https://my-resource.cognitiveservices.azure.com/openai/v1": "azure",
    "https://api.anthropic.com": "anthropic",
    "https://aws-external-anthropic.eu-west-1.api.aws": "anthropic",
    "https://claude.googleapis.com/v1": "anthropic",
    "https://generativelanguage.googleapis.com/v1beta": "google",
    "https://aiplatform.googleapis.com/v1": "vertex",
    "https://europe-west4-aiplatform.googleapis.com/v1": "vertex",
    "https://aiplatform.eu.rep.googleapis.com/v1": "vertex",
    "https://bedrock-runtime.eu-west-1.amazonaws.com": "aws",
    "https://bedrock-runtime-fips.us-east-1.amazonaws.com": "aws",
    "https://bedrock-mantle.eu-west-1.api.aws/anthropic": "aws",
    "https://api.cohere.com/v2": "cohere",
    "https://api.cohere.ai/v2": "cohere",
    "https://api.mistral.ai/v1": "mistral",
    "https://ollama.com/api": "ollama",
    "https://api.deepseek.com/v1": "deepseek",
    "https://api.moonshot.ai/v1": "moonshot",
    "https://api.moonshot.cn/v1": "moonshot",
    "https://api.kimi.com/coding/v1": "moonshot",
    "https://dashscope.aliyuncs.com/compatible-mode/v1": "alibaba",
    "https://dashscope-intl.aliyuncs.com/compatible-mode/v1": "alibaba",
    "https://api.z.ai/api/paas/v4": "zai",
    "https://open.bigmodel.cn/api/paas/v4": "zai",
    "https://api.minimax.io/v1": "minimax",
    "https://api.minimaxi.com/v1": "minimax",
    "https://api.minimax.chat/v1": "minimax",
    "https://openrouter.ai/api/v1": "openrouter",
    "https://api.groq.com/openai/v1": "groq",
    "https://api.cerebras.ai/v1": "cerebras",
    "https://api.x.ai/v1": "xai",
    "https://eu-west-1.api.x.ai/v1": "xai",
    "https://api.together.xyz/v1": "together",
    "https://api.together.ai/v1": "together",
    "https://api.fireworks.ai/inference/v1": "fireworks",
    "https://api.githubcopilot.com": "github-copilot",
    "https://api.business.githubcopilot.com": "github-copilot",
    "https://ai-gateway.vercel.sh/v1": "vercel",
    "https://api.cloudflare.com/client/v4/accounts/a/ai/v1": "cloudflare",
    "https://gateway.ai.cloudflare.com/v1/a/g/compat": "cloudflare",
    "https://my-account.snowflakecomputing.com/api/v2/cortex/v1": "snowflake",
    "https://api.novita.ai/v3/openai": "novita",
    "https://tokenhub.tencentmaas.com/v1": "tencent",
    "https://tokenhub-intl.tencentcloudmaas.com/v1": "tencent",
    "https://user:word@api.deepseek.com/v1": "deepseek",
    "https://api.deepseek.com.example.org/v1": None,
    "https://example.org/v1": None,
}

SAID = {
    "https://bedrock-mantle.eu-west-1.api.aws/anthropic": "anthropic.messages",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/anthropic": "anthropic.messages",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1": "openai.chat",
    "https://bedrock-runtime.eu-west-1.amazonaws.com": "bedrock.converse",
    "https://my-resource.services.ai.azure.com/anthropic": "anthropic.messages",
    "https://api.deepseek.com/Anthropic/": "anthropic.messages",
    "https://example.org/anthropic/v1": "anthropic.messages",
    "https://example.org/anthropic-like": "openai.chat",
    "https://generativelanguage.googleapis.com/v1beta/openai": "openai.chat",
    "https://aiplatform.googleapis.com/v1/projects/p/endpoints/openapi": "openai.chat",
    "https://bedrock-mantle.us-east-1.api.aws/v1": "openai.chat",
    "https://bedrock-mantle.us-east-1.api.aws/openai/v1": "openai.chat",
    "https://bedrock-mantle.us-east-1.api.aws/v1/responses": "openai.responses",
    "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1": "anthropic.messages",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse": "bedrock.converse",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/invoke": "anthropic.messages",
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/invoke-with-response-stream": (
        "anthropic.messages"
    ),
    "https://example.org/invoke": "openai.chat",
    "https://example.org/model/m/converse": "bedrock.converse",
    "https://example.org/model/m/converse-stream": "bedrock.converse",
    "https://ollama.com/v1": "openai.chat",
    "https://ollama.com/api": "ollama.chat",
    "http://localhost:11434/v1": "openai.chat",
    "http://localhost:11434/api/chat": "ollama.chat",
    "https://api.anthropic.com/v1": "anthropic.messages",
    "https://api.anthropic.com/v1/chat/completions": "openai.chat",
    "https://api.mistral.ai/v1/chat/completions": "mistral.chat",
    "https://api.cohere.com/compatibility/v1": "openai.chat",
    "https://example.org/v2/chat": "cohere.chat",
    "https://example.org/v1/messages/": "anthropic.messages",
    "https://example.org/v1beta/models/m:generateContent": "gemini.generate_content",
    "https://example.org/v1beta/models/m:streamGenerateContent": "gemini.generate_content",
    "https://example.org/v1beta/interactions": "gemini.generate_content",
}
"""The api that is spoken at an address where no one names one."""

SPOKEN: dict[tuple[str | None, str | None], str] = {
    ("aws", "eu.anthropic.claude-opus-5-v1:0"): "bedrock.converse",
    ("azure", "claude-opus-5"): "anthropic.messages",
    ("azure", "gpt-5.6"): "openai.chat",
    ("vertex", "claude-sonnet-4-5@20250929"): "anthropic.messages",
    ("vertex", "gemini-3-pro"): "gemini.generate_content",
}
"""The api in which a host speaks to a model where no one names one."""

APIS = {
    "messages": "anthropic.messages",
    "converse": "bedrock.converse",
    "bedrock-runtime converse": "bedrock.converse",
    "v2/chat": "cohere.chat",
    "generateContent": "gemini.generate_content",
    "interactions": "gemini.generate_content",
    "/api/chat": "ollama.chat",
    "chat.completions": "openai.chat",
    "Responses": "openai.responses",
    "UIMessage v5+/SSE UI message stream": "thinking_events",
}

FIRST_FIELD: dict[tuple[str | None, str | None], str] = {
    (None, None): "reasoning_details",
    ("alibaba", None): "reasoning_content",
    ("alibaba", "qwen4-max"): "reasoning_content",
    ("cerebras", None): "reasoning",
    ("cloudflare", None): "reasoning",
    ("deepseek", None): "reasoning_content",
    ("fireworks", None): "reasoning_content",
    ("github-copilot", None): "reasoning_text",
    ("groq", None): "reasoning",
    ("litellm", None): "thinking_blocks",
    ("llama.cpp", None): "reasoning_content",
    ("lmstudio", None): "reasoning_content",
    ("lmstudio", "openai/gpt-oss-20b"): "reasoning",
    ("minimax", None): "reasoning_details",
    ("moonshot", None): "reasoning_content",
    ("novita", None): "reasoning_details",
    ("ollama", None): "reasoning",
    ("openai", None): "reasoning_details",
    ("openrouter", None): "reasoning_details",
    ("sglang", None): "reasoning_content",
    ("snowflake", None): "reasoning_details",
    ("tencent", None): "reasoning_content",
    ("together", None): "reasoning",
    ("together", "zai-org/GLM-5.3"): "reasoning_content",
    ("vercel", None): "reasoning_details",
    ("vllm", None): "reasoning",
    ("xai", None): "reasoning_content",
    ("zai", None): "reasoning_content",
}
"""Which of all the fields of Chat Completions is stored where a host fills every one."""

NAMED = {
    "anthropic.messages": "aws azure deepseek minimax moonshot vertex zai",
    "openai.chat": "azure google mistral openai vertex",
    "openai.responses": "azure deepseek mistral openai openrouter vllm xai",
}
"""Providers that chunks of these protocols name."""

KEPT_IN_TEXT: dict[str, tuple[tuple[str | None, str | None], ...]] = {
    "anthropic.messages": ((None, None), ("anthropic", None)),
    "bedrock.converse": (
        (None, None),
        ("aws", None),
        ("aws", "us.anthropic.claude-opus-5-v1:0"),
        ("aws", "us.deepseek.r1-v1:0"),
        ("aws", "openai.gpt-oss-120b-1:0"),
    ),
    "gemini.generate_content": ((None, None), ("google", None), ("vertex", None)),
    "openai.responses": (
        *((host, None) for host in "azure deepseek mistral openai openrouter xai".split()),
    ),
}
"""The protocols whose text holds no delimiters, at these hosts: what looks like one was said."""

LEADING = ("azure", "openai")
"""The hosts where only a block that begins the answer is a thought."""

UNOPENED: dict[tuple[str | None, str], str] = {
    (None, "openai.responses"): "y",
    ("vllm", "openai.responses"): "y",
    ("ollama", "ollama.chat"): "y",
    **{
        (host, "openai.chat"): "x\n\n\ny"
        for host in "google mistral novita openrouter snowflake vercel vertex".split()
    },
}
"""What is shown of a text that closes a thought which only a server's template may have opened."""

NAMES = ("api", "ending", "segment")
"""The tables whose rows are a name and what it stands for."""

DELIMITED = {
    "cohere/command-a-reasoning-08-2025": "<|START_THINKING|>{}<|END_THINKING|>",
    "CohereLabs/command-a-plus-05-2026": "<|START_THINKING|>{}<|END_THINKING|><|START_TEXT|>",
    "baidu/ernie-4.5-21b-a3b-thinking": "<think>{}</think><response>",
    "google/gemma-4-27b-it": "<|channel>thought\n{}<channel|>",
    "google/medgemma-27b-it": "<unused94>thought{}<unused95>",
    "ibm-granite/granite-3.3-8b-instruct": "<think>{}</think><response>",
    "openai/gpt-oss-120b": "<|channel|>analysis<|message|>{}<|end|>",
    "tencent/Hunyuan-A13B-Instruct": "<think>{}</think><answer>",
    "moonshotai/Kimi-VL-A3B-Thinking": "\u25c1think\u25b7{}\u25c1/think\u25b7",
    "moonshotai/kimi-k3": "<|open|>think<|sep|>{}<|close|>think<|sep|>",
    "MiniMaxAI/MiniMax-M3": "<mm:think>{}</mm:think>",
    "mistralai/Magistral-Small-2509": "[THINK]{}[/THINK]",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "<seed:think>{}</seed:think>",
}
"""What models write around a thought where their host hands the text on."""


TAGGED_ALL_THE_SAME = (
    ("aws", "us.amazon.nova-micro-v1:0", "bedrock.converse"),
    ("aws", "us.amazon.nova-lite-v1:0", "bedrock.converse"),
    ("aws", "us.amazon.nova-pro-v1:0", "bedrock.converse"),
    ("aws", "us.amazon.nova-premier-v1:0", "bedrock.converse"),
    ("aws", "moonshot.kimi-k2-thinking", "bedrock.converse"),
    ("aws", "anthropic.claude-3-opus-20240229-v1:0", "bedrock.converse"),
    ("anthropic", "claude-3-opus-20240229", "anthropic.messages"),
    *((host, None, "openai.responses") for host in (None, "vllm", "lmstudio", "ollama")),
)
"""The models that write tags into a protocol that keeps the thoughts of others out of the text."""


@dataclass(frozen=True)
class Expectation:
    name: str
    observe: Callable[[], Any]
    expected: Any


def usual_api(name: str) -> tuple[str | None, str]:
    return contract_lookup.provider_id(name), contract_lookup.find_contract(name).api


def spoken(provider: str | None, model: str | None, address: str | None = None) -> str:
    return contract_lookup.find_contract(provider, model, base_url=address).api


def known_api(alias: str) -> str | None:
    try:
        return contract_lookup.api_name(alias)
    except InvalidCall:
        return None


def first_field(provider: str | None, model: str | None) -> str | None:
    """Every field says another thought; the message keeps the one that counts."""
    body = {
        "reasoning_details": [{"type": "reasoning.text", "text": "1", "index": 0}],
        "thinking_blocks": [{"type": "thinking", "thinking": "2"}],
        "reasoning_items": [{"type": "reasoning", "summary": [{"text": "3"}]}],
        "reasoning": "4",
        "reasoning_content": "5",
        "thinking": "6",
        "reasoning_text": "7",
        "content": [{"type": "thinking", "thinking": "8"}],
    }
    message = normalize_response(
        {"choices": [{"message": body}]}, provider=provider, model=model, api="openai.chat"
    )
    return message.thinking[0].source_field


def alias_at(api: str, field: str) -> str | None:
    body = {"choices": [{"message": {field: "x"}}]}
    thinking = normalize_response(body, api=api).thinking
    return thinking[0].source_field if thinking else None


def names_its_provider(provider: str, api: str | None) -> bool:
    """What a chunk of reasoning says of where it came from."""
    normalizer = StreamNormalizer(provider, api=api)
    shown = normalizer.feed({"type": "thinking_delta", "delta": "x", "contentIndex": 0})
    return any(isinstance(chunk, ReasoningChunk) and chunk.provider == provider for chunk in shown)


def visible(provider: str | None, model: str | None, api: str | None, text: str) -> str:
    return normalize_response(text, provider=provider, model=model, api=api).text.strip()


def output(provider: str | None, api: str, event: dict[str, Any]) -> int | None:
    shown = StreamNormalizer(provider, api=api).feed(event)
    return next((chunk.usage.output for chunk in shown if isinstance(chunk, UsageChunk)), None)


def snapshots(provider: str, model: str | None) -> str:
    normalizer = StreamNormalizer(provider, model, "openai.chat")
    for text in ("Think of", "Think of it."):
        normalizer.feed({"choices": [{"delta": {"reasoning_content": text}}]})
    return normalizer.finish().thinking[0].thought


def sealed(provider: str, model: str | None, field: str, seal: str) -> list[str]:
    """The seal comes after the text, and is on the thought all the same."""
    normalizer = StreamNormalizer(provider, model, "openai.chat")
    for said in ({field: "Think."}, {"content": "Say."}, {seal: "c2VhbA=="}):
        normalizer.feed({"choices": [{"delta": said}]})
    return [block.thought for block in normalizer.finish().thinking if block.opaque]


CHAT_USAGE = {
    "choices": [],
    "usage": {"completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 18}},
}
GEMINI_USAGE = {"usageMetadata": {"candidatesTokenCount": 12, "thoughtsTokenCount": 18}}


def expectations() -> Iterator[Expectation]:
    for provider, aliases in ALIASES.items():
        api = OWN_API.get(provider, "openai.chat")
        for name in (provider, *aliases.split(), provider.upper()):
            yield Expectation(f"host {name}", partial(usual_api, name), (provider, api))
        named = partial(names_its_provider, provider, None)
        yield Expectation(f"chunks name {provider}", named, True)
    for address, found in ADDRESSES.items():
        observe = partial(contract_lookup.provider_id, None, address)
        yield Expectation(f"address {address}", observe, found)
    for address, api in SAID.items():
        yield Expectation(f"api at {address}", partial(spoken, None, None, address), api)
    for (host, model), api in SPOKEN.items():
        yield Expectation(f"api of {host} {model}", partial(spoken, host, model), api)
    for alias, api in APIS.items():
        yield Expectation(f"api {alias}", partial(known_api, alias), api)
    for (host, model), field in FIRST_FIELD.items():
        observe_field = partial(first_field, host, model)
        yield Expectation(f"field of {host} {model}", observe_field, field)
    mistral = partial(alias_at, "mistral.chat", "reasoning_content")
    yield Expectation("aliases at Mistral", mistral, "reasoning_content")
    for api, providers in NAMED.items():
        for provider in providers.split():
            named = partial(names_its_provider, provider, api)
            yield Expectation(f"{api} chunks name {provider}", named, True)
    for api, places in KEPT_IN_TEXT.items():
        for host, model in places:
            keeps = partial(visible, host, model, api, "<think>x</think>y")
            yield Expectation(f"text of {host} {model} {api}", keeps, "<think>x</think>y")
    for host in LEADING:
        keeps = partial(visible, host, None, "openai.chat", "y <think>x</think>")
        yield Expectation(f"later tags of {host}", keeps, "y <think>x</think>")
    for (server, api), shown in UNOPENED.items():
        shows = partial(visible, server, None, api, "x\n</think>\n\ny")
        yield Expectation(f"unopened thought of {server} {api}", shows, shown)
    for model, form in DELIMITED.items():
        for host in ("vllm", None):
            shows = partial(visible, host, model, None, form.format("secret") + "shown")
            yield Expectation(f"delimiters of {model} at {host}", shows, "shown")
    for host, model, api in TAGGED_ALL_THE_SAME:
        shows = partial(visible, host, model, api, "<thinking>x</thinking>y")
        yield Expectation(f"tags of {model} by {api}", shows, "y")
    for host, expected in (("xai", 48), ("deepseek", 30), (None, 30)):
        counts = partial(output, host, "openai.chat", CHAT_USAGE)
        yield Expectation(f"output of {host}", counts, expected)
    for host in ("google", "vertex", None):
        counts = partial(output, host, "gemini.generate_content", GEMINI_USAGE)
        yield Expectation(f"output of {host} by Gemini's own api", counts, 30)
    for model in (None, "MiniMax-M3", "MiniMax-M3.1"):
        grown = partial(snapshots, "minimax", model)
        yield Expectation(f"snapshots of {model}", grown, "Think of it.")
    for provider, model, field, seal in (
        ("alibaba", "qwen4-max", "reasoning_content", "encrypted_content"),
        ("xai", None, "reasoning_content", "encrypted_content"),
        ("github-copilot", None, "reasoning_text", "reasoning_opaque"),
        ("github-copilot", "claude-opus-5", "reasoning_text", "reasoning_opaque"),
        ("github-copilot", "gemini-3-pro", "reasoning_text", "reasoning_opaque"),
    ):
        whose = partial(sealed, provider, model, field, seal)
        yield Expectation(f"seal of {provider} {model}", whose, ["Think."])


EXPECTATIONS = tuple(expectations())


def read() -> Tables:
    text = files("reasoning_store.wire").joinpath("contracts.toml").read_text(encoding="utf-8")
    return contract_tables.resolve_likes(tomllib.loads(text))


def rows(tables: Tables) -> list[tuple[str, Any]]:
    """Every row as its table and its key there."""
    names = [("api", name) for name, aliases in tables["api"].items() if aliases]
    paths = [(table, name) for table in ("ending", "segment") for name in tables[table]]
    return [*names, *paths] + [
        (table, place)
        for table in ("host", "contract", "template")
        for place in range(len(tables[table]))
    ]


def without(tables: Tables, row: tuple[str, Any]) -> Tables:
    """The same tables with one row less; an api keeps its own name and loses its others."""
    table, key = row
    if table == "api":
        return {**tables, "api": {**tables["api"], key: []}}
    if table in ("ending", "segment"):
        others = {name: api for name, api in tables[table].items() if name != key}
        return {**tables, table: others}
    return {**tables, table: [item for place, item in enumerate(tables[table]) if place != key]}


@contextmanager
def in_force(tables: Tables) -> Iterator[None]:
    """Read these tables in place of the file."""

    def read_again() -> None:
        contract_tables.shipped_contracts.cache_clear()
        contract_tables._read_once.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract_tables, "_shipped_tables", lambda: tables)
        read_again()
        yield
    read_again()


def broken(tables: Tables) -> list[str]:
    """The expectations that these tables do not meet."""
    with in_force(tables):
        return [item.name for item in EXPECTATIONS if item.observe() != item.expected]


def is_read_by_ingress(tables: Tables, row: tuple[str, Any]) -> bool:
    """Whether ingress reads anything else where the row is gone."""
    table, key = row
    if table != "contract":
        return True
    item = tables[table][key]
    models = [pattern.replace("*", "") for pattern in item.get("models", ["*"])]

    def told() -> list[Mapping[str, Any]]:
        found = [
            contract_lookup.find_contract(item.get("provider"), model, item["api"])
            for model in models
        ]
        return [
            {"api": one.api, "reading": replace(one.reading, fields=mirrored_fields(one))}
            for one in found
        ]

    with in_force(tables):
        before = told()
    with in_force(without(tables, row)):
        return told() != before


def label(tables: Tables, row: tuple[str, Any]) -> str:
    table, key = row
    if table in NAMES:
        return f"{table} {key}"
    item = tables[table][key]
    parts = (item.get("id"), item.get("provider"), item.get("api"), *item.get("models", ()))
    return " ".join([table, *(part for part in parts if part)])


def main() -> int:
    tables = read()
    loose = [
        label(tables, row)
        for row in rows(tables)
        if is_read_by_ingress(tables, row) and not broken(without(tables, row))
    ]
    for name in [f"unmet: {item}" for item in broken(tables)] + [f"loose: {row}" for row in loose]:
        print(name)
    return 1 if loose or broken(tables) else 0


if __name__ == "__main__":
    sys.exit(main())
