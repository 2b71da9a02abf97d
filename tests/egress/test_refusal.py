"""Known refusals, explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.settings import KEYS
from reasoning_store.egress.refusals import explain_refusal
from reasoning_store.testing import refusal
from tests.egress.histories import CLAUDE, OPEN_LOOP, answer, call
from tests.properties import each

FILE = Path(__file__).parent.parent / "cases" / "wire" / "errors_400.json"
KNOWN: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["patterns"]
PROVIDERS = {"openai.responses": "openai"}


@each("known", KNOWN)
@each("around", ["{}", "Error code: 400 - {{'message': '{} (x)'}}"])
def test_every_recorded_refusal_is_explained(known: dict[str, Any], around: str) -> None:
    """By its cause and what mends it, and the setting where one does."""
    for part in known["match"].split("|"):
        found = explain_refusal(PROVIDERS.get(known["api"], known["api"]), around.format(part))

        assert found is not None
        assert found.cause
        assert found.fix
        assert {setting.split("=")[0] for setting in found.settings} <= set(KEYS)


@pytest.mark.parametrize(
    ("provider", "text", "settings"),
    [
        (
            "kimi",
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 3",
            ("reasoning.floor=provider",),
        ),
        (
            "anthropic",
            "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to "
            "a different conversation.",
            ("reasoning.stripFromContext=all", "reasoning.floor=off"),
        ),
        (
            "anthropic",
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`tool_use`.",
            ("reasoning.floor=provider",),
        ),
    ],
)
def test_the_settings_that_help_are_named(
    provider: str, text: str, settings: tuple[str, ...]
) -> None:
    """As it stands in the text of the service, quotes and all."""
    found = explain_refusal(provider, text)

    assert found is not None
    assert found.settings == settings


@pytest.mark.parametrize(
    "text",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. "
        "Supported values are: 'low', 'medium', and 'high'.",
        "Unsupported value: 'reasoning_effort' does not support 'none' with this model.",
    ],
)
def test_an_effort_that_a_model_does_not_take_is_explained(text: str) -> None:
    """The setting is the one that asked for it."""
    found = explain_refusal("openai", text)

    assert found is not None
    assert found.settings == ("reasoning.effort",)


FRESH = rs.Origin(provider="anthropic", api="anthropic.messages", model="claude-opus-5-5")
OPENAI = rs.Origin(provider="openai", api="openai.responses", model="gpt-5.6")
CUT_OFF = {
    "a signature": rs.ThinkingBlock(thought="Hm.", source_field="thinking", signature="c2ln="),
    "a seal": rs.ThinkingBlock(
        thought="Hm.", source_field="reasoning.summary", encrypted="gAAAA+", provider_metadata={}
    ),
}


def loop(*thoughts: rs.ThinkingBlock, origin: rs.Origin) -> list[rs.Message]:
    """Return an open loop with a step for each thought."""
    steps = [
        message
        for n, block in enumerate(thoughts)
        for message in (
            rs.assistant(block, call(f"call_{n}"), origin=origin),
            answer(f"call_{n}"),
        )
    ]
    return [rs.user("Weather in Oslo?"), *steps]


@pytest.mark.parametrize(
    ("thought", "origin"), [("a signature", FRESH), ("a signature", CLAUDE), ("a seal", OPENAI)]
)
def test_the_settings_of_a_refusal_mend_the_request_in_an_open_loop(
    thought: str, origin: rs.Origin
) -> None:
    """All of them together; leaving thinking out alone changes nothing where it is demanded."""
    assert origin.provider
    to: dict[str, Any] = {"provider": origin.provider, "model": origin.model, "api": origin.api}
    messages = loop(CUT_OFF[thought], origin=origin)

    def body(*settings: str) -> dict[str, Any]:
        chosen = dict(setting.split("=") for setting in settings)
        return rs.build_request(messages, settings=chosen, **to).body

    said = refusal(body(), **to)
    found = explain_refusal(origin.provider, said or "accepted")

    assert found is not None
    assert body(found.settings[0]) == body()
    assert refusal(body(*found.settings), **to) is None


def test_the_more_particular_words_count() -> None:
    """Two causes share a sentence: a bad signature, and one bound to another conversation."""
    text = "Invalid `signature` in `thinking` block"
    plain = explain_refusal("anthropic", text)
    bound = explain_refusal("anthropic", f"{text}. The block is bound to a different conversation")

    assert plain is not None
    assert bound is not None
    assert plain.cause != bound.cause


def test_quotes_case_and_spaces_make_no_difference() -> None:
    """Services word one refusal in several ways."""
    one = "The `reasoning_content` in the thinking mode must be passed back to the API."
    other = "the  reasoning_content in the\nTHINKING mode must be passed back"

    assert explain_refusal("deepseek", one) == explain_refusal("deepseek", other) is not None


def test_deepseek_says_the_same_in_the_words_of_both_its_protocols() -> None:
    """The field has another name in each."""
    chat, messages = ("reasoning_content", "content[].thinking")
    text = "The `{}` in the thinking mode must be passed back to the API.".format

    assert explain_refusal("deepseek", text(chat)) is not None
    assert explain_refusal("deepseek", text(messages)) == explain_refusal("deepseek", text(chat))


def test_a_refusal_is_explained_through_a_gateway() -> None:
    """The words tell, with whichever name; and without a name, too."""
    text = "Upstream: Expected `thinking` or `redacted_thinking`, but found `tool_use`"

    assert explain_refusal("openrouter", text) == explain_refusal(None, text) is not None


def test_words_that_are_in_many_errors_tell_only_of_their_provider() -> None:
    """A field's name alone is no explanation elsewhere."""
    assert explain_refusal("openrouter", "bad reasoning_details") is not None
    assert explain_refusal("deepseek", "bad reasoning_details") is None


@pytest.mark.parametrize("text", ["", "Rate limit reached for requests", "Internal error"])
def test_what_is_not_known_is_not_explained(text: str) -> None:
    """No guess."""
    assert explain_refusal("openai", text) is None


def test_an_error_that_is_no_text_is_refused() -> None:
    """The exception itself is not the text of the answer."""
    with pytest.raises(rs.InvalidCall, match="error_text"):
        explain_refusal("openai", ValueError("x"))  # type: ignore[arg-type]


def test_an_explanation_prints_in_one_line() -> None:
    """Cause, what mends it, and the setting."""
    found = explain_refusal("minimax", "this model requires adaptive thinking (2013)")

    assert str(found) == (
        "the model cannot stop thinking; ask for adaptive thinking, or set nothing "
        "(reasoning.enabled=true)"
    )


@pytest.mark.parametrize("provider", ["deepseek", "moonshot"])
def test_what_the_strict_provider_answers_is_explained(provider: str) -> None:
    """The judge of our tests and this table speak of the same refusals."""
    request = rs.build_request(
        OPEN_LOOP, provider=provider, model="m", settings={"reasoning.floor": "off"}
    )
    text = refusal(request.body, provider=provider, model="m")
    found = explain_refusal(provider, text or "")

    assert found is not None
    assert found.settings == ("reasoning.floor=provider",)


OVERFLOWS = {
    "vertex": "Unable to submit request because the input token count is 1066042 but model only "
    "supports up to 1048576.",
    "huggingface": "`inputs` must have less than 4096 tokens. Given: 5000",
    "cerebras": "Current length is 9000 while limit is 8192",
    "nova's host": "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "cloudflare": "The estimated number of input and maximum output tokens (9000) exceeded this "
    "model context window limit (8000).",
    "litellm": "Requested token count exceeds the model's maximum context length of 131072 tokens",
    "poolside": "Input length 300000 exceeds the maximum allowed input length of 262144 tokens.",
    "openai": "This model's maximum context length is 128000 tokens. However, your messages "
    "resulted in 130519 tokens. Please reduce the length of the messages.",
    "azure": "Your input exceeds the context window of this model. Please adjust your input.",
    "anthropic": "prompt is too long: 219898 tokens > 200000 maximum",
    "google": "The input token count (1196265) exceeds the maximum number of tokens allowed "
    "(1048575).",
    "deepseek": "This model's maximum context length is 131072 tokens. However, you requested "
    "150000 tokens (140000 in the messages, 10000 in the completion).",
    "moonshot": "Invalid request: Your request exceeded model token limit: 262144",
    "mistral": "Prompt contains 235396 tokens and 0 draft tokens, too large for model with 131072 "
    "maximum context length",
    "aws": "Input is too long for requested model.",
    "cohere": "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "openrouter": "This endpoint's maximum context length is 131072 tokens. However, you requested "
    "about 140000 tokens",
    "vllm": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "sglang": "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "lmstudio": "Trying to keep the first 6000 tokens when context the overflows. However, the "
    "model is loaded with context length of only 4096 tokens, which is not enough.",
    "ollama": "prompt too long; exceeded max context length by 15935 tokens",
    "ollama's embedder": "input length exceeds maximum context length",
    "groq": "Please reduce the length of the messages or completion.",
    "alibaba": "Range of input length should be [1, 129024]",
    "zai": "Prompt exceeds max length",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "github-copilot": "prompt token count of 70000 exceeds the limit of 64000",
    "fireworks": "The prompt is too long: 221782, model maximum context length: 202752",
}


@each("provider", OVERFLOWS)
@each("named", [True, False])
def test_a_full_context_is_explained_with_the_steps_that_help(provider: str, named: bool) -> None:
    """In every host's own words; the steps are those that a plan of a compression takes."""
    found = explain_refusal(provider.split("'")[0] if named else None, OVERFLOWS[provider])

    assert found is not None
    assert found.steps == ("strip", "clear", "summarize")
    assert "session.compression" in found.fix


OTHERS = {
    "thoughts for a model that has none": (
        "mistral",
        "Reasoning input is not enabled for this model",
        "does not think",
    ),
    "a mode of prompts": (
        "mistral",
        "Reasoning prompt mode is not enabled for this model",
        "takes no effort",
    ),
    "a field of others": (
        "mistral",
        "extra_forbidden, loc: body, messages, 4, assistant, reasoning_content",
        "another field for thoughts",
    ),
    "a result without its call at Mistral": (
        "mistral",
        "Unexpected role 'tool' after role 'user'",
        "has no call before it",
    ),
    "a message of nothing": (
        "mistral",
        "Assistant message must have either content or tool_calls, but not none.",
        "empty or blank",
    ),
    "an image among many": (
        "anthropic",
        "messages.19.content.27.image.source.base64.data: At least one of the image dimensions "
        "exceed max allowed size for many-image requests: 2000 pixels",
        "an image is broken, too large",
    ),
    "an image that cannot be read": (
        "anthropic",
        "Could not process image",
        "an image is broken, too large",
    ),
    "too many images": (
        "anthropic",
        "Too much media: 0 document pages + 103 images > 100",
        "one too many",
    ),
    "an empty text": (
        "anthropic",
        "messages: text content blocks must be non-empty",
        "empty or blank",
    ),
    "an empty text that is cached": (
        "anthropic",
        "messages.87.content.1.text: cache_control cannot be set for empty text blocks",
        "empty or blank",
    ),
    "a blank text at Bedrock": (
        "aws",
        "The text field in the ContentBlock object at messages.11.content.0 is blank.",
        "empty or blank",
    ),
    "Nova's own thoughts": (
        "aws",
        "User messages cannot contain reasoning content. Please remove the reasoning content.",
        "takes no reasoning back",
    ),
    "a thought without its signature": (
        "aws",
        "messages.3.content.0.thinking.signature: Field required",
        "has no signature",
    ),
    "turns of one role": (
        "aws",
        "A conversation must alternate between user and assistant roles.",
        "two messages of one role",
    ),
    "a call at the wrong place": (
        "google",
        "Please ensure that function call turn comes immediately after a user turn or after a "
        "function response turn.",
        "has no response after it",
    ),
    "a role": (
        "google",
        "Role 'function' is not supported. Please use a valid role: SYSTEM, USER, MODEL.",
        "a role that the model does not know",
    ),
    "a level of thinking": (
        "google",
        "'minimal' is not a supported thinking level for this model. Allowed values are: medium, "
        "low, high.",
        "does not take this effort",
    ),
    "a level at Vertex": (
        "vertex",
        "Thinking level is unsupported: THINKING_LEVEL_MINIMAL",
        "does not take this effort",
    ),
    "tools that a history has and its request has not": (
        "litellm",
        "litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in.",
        "names no tools",
    ),
    "a limit of the answer that leaves no room": (
        "anthropic",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "the answer's limit together",
    ),
    "a call without its output, Responses": (
        "openai",
        "No tool output found for function call call_1.",
        "has no response",
    ),
    "a call without its output, DeepSeek": (
        "deepseek",
        "No tool output found for tool call call-a.",
        "has no response",
    ),
    "an output without its call": (
        "openai",
        "No tool call found for function call output with call_id call_1.",
        "has no call before it",
    ),
    "an effort level": (
        "anthropic",
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max.",
        "does not take this effort",
    ),
    "an effort at Grok": (
        "xai",
        "Model grok-4 does not support parameter reasoningEffort.",
        "takes no effort",
    ),
    "tools and an effort": (
        "openai",
        "Function tools with reasoning_effort are not supported for gpt-5.4 in "
        "/v1/chat/completions. To use function tools, use /v1/responses",
        "does not reason in Chat Completions",
    ),
    "Nova without tools": (
        "aws",
        "Malformed input request: #/messages/2/content/0: extraneous key [toolResult] is not "
        "permitted, please reformat your input and try again.",
        "names no tools",
    ),
    "a tool that was demanded": (
        "groq",
        "Tool choice is required, but model did not call a tool",
        "demanded a tool call",
    ),
    "a result without its call": (
        "google",
        "Missing call_id in content of type function_result",
        "does not name its call",
    ),
    "an image at DeepSeek": (
        "deepseek",
        "Failed to deserialize the JSON body into the target type: messages[0]: unknown variant "
        "`image_url`, expected `text` at line 1 column 100",
        "takes no images",
    ),
    "an image at OpenRouter": (
        "openrouter",
        "No endpoints found that support image input",
        "takes no images",
    ),
    "an image at Bedrock": (
        "aws",
        "This model doesn't support the image content block that you provided.",
        "takes no images",
    ),
    "thinking that was edited": (
        "anthropic",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified.",
        "thinking of the open turn has changed",
    ),
    "a budget above the limit": (
        "anthropic",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        "not larger than the budget",
    ),
    "a tool that is forced": (
        "anthropic",
        "Thinking may not be enabled when tool_choice forces tool use.",
        "a tool is forced",
    ),
    "a reply that stands last": (
        "anthropic",
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.",
        "ends with the model's own message",
    ),
}


@each("name", OTHERS)
def test_a_refusal_about_the_conversation_is_explained(name: str) -> None:
    """By a row of the table, whichever part of the service's text carries it."""
    provider, text, cause = OTHERS[name]
    found = explain_refusal(provider, f"Error code: 400 - {{'error': {{'message': \"{text}\"}}}}")

    assert found is not None
    assert cause in found.cause


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached for gpt-5.6 on tokens per min (TPM): Limit 30000, Used 29000.",
        "Incorrect API key provided",
        "The model `gpt-9` does not exist or you do not have access to it.",
        "Too many tokens, please wait before trying again.",
        "You exceeded your current quota, please check your plan and billing details.",
    ],
)
def test_a_refusal_that_the_conversation_did_not_cause_is_not_explained(text: str) -> None:
    """Keys, quotas and rates: nothing in a history mends them."""
    assert explain_refusal("openai", text) is None
