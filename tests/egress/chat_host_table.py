"""What each host of Chat Completions and its kin has to get: a row of contracts, an entry.

``thought`` is where a thought of the host's own goes, ``back`` where one goes instead that
came in that field, ``seal`` where ciphertext goes. ``demanded`` are the thoughts that are
sent though no setting asks for them, ``filled`` what stands in for a missing one, message by
message. ``reads`` names the makers whose seals the model is sent. ``on`` and ``off``, ``low``
and ``max`` effort and a ``budget`` are what the body says of reasoning, ``minimal``, ``medium``
and ``tools`` what it says of these efforts and with a tool, where that is another; ``kept`` is
what it says when a thought of a closed turn is in it. What is not said is not there.
"""

from __future__ import annotations

from typing import Any

from tests.egress.chat_hosts import Host

EMPTY = [{"reasoning_content": ""}] * 4
"""An empty field in each message of the model."""
_UNSIGNED_CALL = {
    "calls": [
        {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
    ]
}
UNSIGNED: list[Any] = [_UNSIGNED_CALL, {}, _UNSIGNED_CALL, {}]
"""Google's documented signature on each first call."""
GOOGLES_BUDGET = {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}}


def efforts(**words: str) -> dict[str, Any]:
    """Return entries of which the body has nothing but a ``reasoning_effort``."""
    return {entry: {"reasoning_effort": word} for entry, word in words.items()}


def switch(**types: str) -> dict[str, Any]:
    """Return entries of which the body has nothing but the type of ``thinking``."""
    return {entry: {"thinking": {"type": kind}} for entry, kind in types.items()}


EXPECTED: dict[Host, dict[str, Any]] = {
    (None, "some-model", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {
            "reasoning": "reasoning",
            "reasoning_text": "reasoning_text",
            "reasoning_details": "reasoning_details",
        },
    },
    ("azure", "gpt-5.6", "openai.chat"): efforts(off="none", low="low", max="xhigh", tools="none"),
    ("openai", "gpt-5.4", "openai.chat"): efforts(off="none", low="low", max="xhigh", tools="none"),
    ("openai", "gpt-5.6", "openai.chat"): efforts(tools="none", off="none", low="low", max="xhigh"),
    ("openai", "gpt-6-sol", "openai.chat"): efforts(
        tools="none", off="none", low="low", max="xhigh"
    ),
    ("openai", "gpt-6.1-terra", "openai.chat"): efforts(
        tools="none", off="none", low="low", max="xhigh"
    ),
    ("openai", "gpt-6.1-sol", "openai.chat"): efforts(low="low", max="xhigh"),
    ("openai", "gpt-6.2-astra", "openai.chat"): efforts(low="low", max="xhigh"),
    ("openai", "gpt-7-sol", "openai.chat"): efforts(low="low", max="high"),
    ("openai", "gpt-4o", "openai.chat"): {},
    ("openai", "gpt-5.1-codex", "openai.chat"): efforts(low="low", max="high"),
    ("openai", "gpt-5.1-codex-max", "openai.chat"): efforts(low="low", max="xhigh"),
    ("openai", "gpt-5", "openai.chat"): efforts(minimal="minimal", low="low", max="high"),
    ("azure", "gpt-5-mini", "openai.chat"): efforts(minimal="minimal", low="low", max="high"),
    ("openai", "gpt-5.1", "openai.chat"): efforts(off="none", low="low", max="high"),
    ("openai", "gpt-5-pro", "openai.chat"): efforts(low="high", max="high"),
    ("openai", "gpt-5.2-pro", "openai.chat"): efforts(low="medium", max="xhigh"),
    ("azure", "o3", "openai.chat"): efforts(low="low", max="high"),
    ("azure", "gpt-5.2", "openai.chat"): efforts(off="none", low="low", max="xhigh"),
    ("azure", "our-deployment", "openai.chat"): efforts(low="low", max="high"),
    ("deepseek", "deepseek-r1", "openai.chat"): {"images": "left out"},
    ("deepseek", "deepseek-v4", "openai.chat"): {
        "images": "left out",
        "thought": "reasoning_content",
        "demanded": "closed_call open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
        **switch(on="enabled", off="disabled"),
        **efforts(low="low", medium="high", max="max"),
    },
    ("moonshot", "kimi-k2.7-code", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "closed_call closed_end open_call open_end",
        "filled": EMPTY,
        **switch(on="enabled"),
    },
    ("moonshot", "kimi-k3", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "closed_call closed_end open_call open_end",
        "filled": EMPTY,
        **efforts(low="low", medium="high", max="max"),
    },
    ("moonshot", "kimi-k2-thinking", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
    },
    ("moonshot", "kimi-k2.6", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
        "kept": {"thinking": {"type": "enabled", "keep": "all"}},
        **switch(on="enabled", off="disabled"),
    },
    ("moonshot", "kimi-k2.5", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
        **switch(on="enabled", off="disabled"),
    },
    ("alibaba", "qwen4-max", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        "on": {"enable_thinking": True},
        "off": {"enable_thinking": False},
        "budget": {"thinking_budget": 2048, "enable_thinking": True},
        "kept": {"preserve_thinking": True},
    },
    ("alibaba", "qwen3-max", "openai.chat"): {
        "thought": "reasoning_content",
        "on": {"enable_thinking": True},
        "off": {"enable_thinking": False},
        "budget": {"thinking_budget": 2048, "enable_thinking": True},
        "kept": {"preserve_thinking": True},
    },
    ("zai", "glm-5.3", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
        **switch(on="enabled"),
        **efforts(low="low", medium="high", max="max"),
    },
    ("zai", "glm-5.2", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
        **switch(on="enabled", off="disabled"),
        **efforts(minimal="minimal", low="low", max="max"),
    },
    ("zai", "glm-4.7", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
        **switch(on="enabled", off="disabled"),
    },
    ("zai", "glm-4.5v", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
        **switch(on="enabled"),
    },
    ("minimax", "minimax-m3.1-flash", "openai.chat"): {
        "thought": "<think>/*/</think>/So",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "demanded": "open_call",
        **switch(on="adaptive"),
    },
    ("minimax", "minimax-m3", "openai.chat"): {
        "thought": "<think>/*/</think>/So",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "demanded": "open_call",
        **switch(on="adaptive", off="disabled"),
    },
    ("minimax", "minimax-m2", "openai.chat"): {
        "thought": "<think>/*/</think>/So",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "demanded": "open_call",
    },
    ("openrouter", "anthropic/claude-opus-5", "openai.chat"): {
        "seal": "reasoning_details",
        "demanded": "open_call",
        "reads": "anthropic/claude-opus-5",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "google/gemini-3-pro", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "demanded": "open_call",
        "filled": [
            {
                "reasoning_details": [
                    {
                        "type": "reasoning.encrypted",
                        "id": "callcall1",
                        "data": "skip_thought_signature_validator",
                        "format": "google-gemini-v1",
                        "index": 0,
                    }
                ]
            },
            {},
            {
                "reasoning_details": [
                    {
                        "type": "reasoning.encrypted",
                        "id": "callcall1",
                        "data": "skip_thought_signature_validator",
                        "format": "google-gemini-v1",
                        "index": 0,
                    }
                ]
            },
            {},
        ],
        "reads": "google/gemini-3-pro google/gemini-2.5-pro",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "google/gemini-2.5-pro", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "reads": "google/gemini-3-pro google/gemini-2.5-pro",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "openai/gpt-5.6", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "demanded": "open_call",
        "reads": "openai/gpt-5.6",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "x-ai/grok-5", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "demanded": "open_call",
        "reads": "x-ai/grok-5",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "deepseek/deepseek-v4", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "demanded": "open_call",
        "reads": "deepseek/deepseek-v4 qwen/qwen4-max",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal"}},
        "low": {"reasoning": {"effort": "low"}},
        "max": {"reasoning": {"effort": "max"}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("openrouter", "qwen/qwen4-max", "openai.chat"): {
        "thought": "reasoning",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "seal": "reasoning_details",
        "demanded": "open_call",
        "reads": "deepseek/deepseek-v4 qwen/qwen4-max",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("vllm", "deepseek-v3.1", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"thinking": True}},
        "off": {"chat_template_kwargs": {"thinking": False}},
        **efforts(low="low", max="high"),
    },
    ("vllm", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        **efforts(low="low", max="high"),
    },
    ("sglang", "deepseek-v3.1", "openai.chat"): {
        "thought": "reasoning_content",
        "on": {"chat_template_kwargs": {"thinking": True}},
        "off": {"chat_template_kwargs": {"thinking": False}},
    },
    ("sglang", "qwen3", "openai.chat"): {
        "thought": "reasoning_content",
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
    },
    ("llama.cpp", "qwen3", "openai.chat"): {
        "thought": "reasoning_content",
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        **efforts(low="low", max="high"),
    },
    ("lmstudio", "gpt-oss-20b", "openai.chat"): {
        "thought": "reasoning",
        **efforts(low="low", max="high"),
    },
    ("lmstudio", "qwen3", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning": "reasoning"},
        **efforts(off="none", low="low", max="high"),
    },
    ("ollama", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        **efforts(off="none", low="low", max="high"),
    },
    ("groq", "openai/gpt-oss-120b", "openai.chat"): {
        "thought": "reasoning",
        **efforts(low="low", max="high"),
    },
    ("groq", "qwen/qwen3.8-27b", "openai.chat"): {
        "thought": "reasoning",
        **efforts(off="none", low="low", max="high"),
    },
    ("groq", "qwen/qwen3-32b", "openai.chat"): {
        "thought": "reasoning",
        **efforts(off="none", low="default", max="default"),
    },
    ("cerebras", "zai-glm-4.7", "openai.chat"): {
        "thought": "<think>*</think>So",
        "kept": {"clear_thinking": False},
        **efforts(off="none"),
    },
    ("cerebras", "gpt-oss-120b", "openai.chat"): {
        "thought": "reasoning",
        **efforts(low="low", max="high"),
    },
    ("xai", "grok-5", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        **efforts(low="low", max="high"),
    },
    ("xai", "grok-4.3", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        **efforts(off="none", low="low", max="high"),
    },
    ("xai", "grok-4.7", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        **efforts(low="low", max="xhigh"),
    },
    ("xai", "grok-4-fast-reasoning", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
    },
    ("xai", "grok-3-mini", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        **efforts(low="low", medium="high", max="high"),
    },
    ("together", "zai-org/GLM-5.3", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning": "reasoning"},
        "on": {"reasoning": {"enabled": True}},
        **efforts(low="low", max="max"),
    },
    ("together", "zai-org/GLM-5.1", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning": "reasoning"},
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        **efforts(low="low", max="high"),
    },
    ("together", "Qwen/Qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        **efforts(low="low", max="high"),
    },
    ("fireworks", "kimi-k2", "openai.chat"): {
        "thought": "reasoning_content",
        "kept": {"reasoning_history": "preserved"},
        **efforts(low="low", max="high"),
    },
    ("fireworks", "deepseek-v4-pro", "openai.chat"): {
        "thought": "reasoning_content",
        "kept": {"reasoning_history": "preserved"},
        **efforts(off="none", low="low", max="high"),
    },
    ("fireworks", "glm-5p2", "openai.chat"): {
        "thought": "reasoning_content",
        "kept": {"reasoning_history": "preserved"},
        **efforts(off="none", low="high", max="max"),
    },
    ("litellm", "anthropic/claude-opus-5", "openai.chat"): {
        "seal": "thinking_blocks",
        "demanded": "open_call",
        "reads": "anthropic/claude-opus-5",
        **efforts(off="none", minimal="minimal", low="low", max="max"),
    },
    ("litellm", "gemini/gemini-3-pro", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "thinking_blocks",
        "reads": "gemini/gemini-3-pro",
        **efforts(off="none", minimal="minimal", low="low", max="max"),
    },
    ("litellm", "xai/grok-5", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "thinking_blocks",
        "reads": "xai/grok-5",
        **efforts(off="none", minimal="minimal", low="low", max="max"),
    },
    ("github-copilot", "claude-opus-5", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "reads": "claude-opus-5",
        **efforts(low="low", max="high"),
    },
    ("github-copilot", "gemini-3-pro", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "demanded": "open_call",
        "reads": "gemini-3-pro",
        **efforts(low="low", max="high"),
    },
    ("github-copilot", "gpt-5.6", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "reads": "gpt-5.6",
        **efforts(low="low", max="high"),
    },
    ("vercel", "openai/gpt-5.6", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "reasoning_details",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "minimal": {"reasoning": {"effort": "minimal", "enabled": True}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "xhigh", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("cloudflare", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        **efforts(low="low", max="high"),
    },
    ("snowflake", "claude-opus-5", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "reasoning_details",
    },
    ("novita", "minimax-m2", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "reasoning_details",
    },
    ("tencent", "deepseek-v4", "openai.chat"): {"thought": "reasoning_content"},
    ("google", "gemini-2.5-flash", "openai.chat"): {
        "budget": GOOGLES_BUDGET,
        **efforts(off="none", minimal="minimal", low="low", max="high"),
    },
    ("google", "gemini-2.5-pro", "openai.chat"): {
        "budget": GOOGLES_BUDGET,
        **efforts(minimal="minimal", low="low", max="high"),
    },
    ("google", "gemini-3-pro", "openai.chat"): {
        "filled": UNSIGNED,
        "budget": GOOGLES_BUDGET,
        **efforts(minimal="minimal", low="low", max="high"),
    },
    ("vertex", "gemini-2.5-pro", "openai.chat"): {
        "budget": GOOGLES_BUDGET,
        **efforts(minimal="minimal", low="low", max="high"),
    },
    ("vertex", "gemini-3-pro", "openai.chat"): {
        "filled": UNSIGNED,
        "budget": GOOGLES_BUDGET,
        **efforts(minimal="minimal", low="low", max="high"),
    },
    ("mistral", "magistral-medium", "openai.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        "on": {"prompt_mode": "reasoning"},
        "budget": {"prompt_mode": "reasoning"},
    },
    ("mistral", "mistral-large-4", "openai.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        **efforts(off="none", low="low", max="high"),
    },
    ("mistral", "codestral-2508", "openai.chat"): {
        "filled": [{}, {}, {}, {"prefix": True}],
    },
    ("mistral", "mistral-medium-3.5", "openai.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        **efforts(off="none", medium="high", max="high"),
    },
    (None, "some-mistral", "mistral.chat"): {
        "thought": "content",
        "back": {"reasoning": "reasoning", "reasoning_content": "reasoning_content"},
    },
    ("mistral", "magistral-medium", "mistral.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        "on": {"prompt_mode": "reasoning"},
        "budget": {"prompt_mode": "reasoning"},
    },
    ("mistral", "mistral-large-4", "mistral.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        **efforts(off="none", low="low", max="high"),
    },
    ("mistral", "mistral-medium-3.5", "mistral.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        **efforts(off="none", medium="high", max="high"),
    },
    ("cohere", "command-a-reasoning", "cohere.chat"): {
        "thought": "content",
        "back": {"tool_plan": "tool_plan"},
        "budget": {"thinking": {"token_budget": 2048, "type": "enabled"}},
        **switch(on="enabled", off="disabled"),
    },
    ("ollama", "gpt-oss:20b", "ollama.chat"): {
        "thought": "thinking",
        "low": {"think": "low"},
        "max": {"think": "high"},
    },
    ("ollama", "qwen3", "ollama.chat"): {
        "thought": "thinking",
        "on": {"think": True},
        "off": {"think": False},
        "low": {"think": "low"},
        "max": {"think": "max"},
    },
}
