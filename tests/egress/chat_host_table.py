"""What each host of Chat Completions and its kin has to get: a row of contracts, an entry.

``thought`` is where a thought of the host's own goes, ``back`` where one goes instead that
came in that field, ``seal`` where ciphertext goes. ``demanded`` are the thoughts that are
sent though no setting asks for them, ``filled`` what stands in for a missing one, message by
message. ``reads`` names the makers whose seals the model is sent. ``on`` and ``off``, ``low``
and ``max`` effort and a ``budget`` are what the body says of reasoning,
and ``tools`` what it says with a tool, where that is another; ``kept`` is what it
says when a thought of a closed turn is in it. What is not said is not there.
"""

from __future__ import annotations

from typing import Any

from tests.egress.chat_hosts import Host

EXPECTED: dict[Host, dict[str, Any]] = {
    (None, "some-model", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {
            "reasoning": "reasoning",
            "reasoning_text": "reasoning_text",
            "reasoning_details": "reasoning_details",
        },
    },
    ("azure", "gpt-5.6", "openai.chat"): {
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
        "tools": {"reasoning_effort": "none"},
    },
    ("openai", "gpt-5.4", "openai.chat"): {
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "xhigh"},
        "tools": {"reasoning_effort": "none"},
    },
    ("openai", "gpt-5.6", "openai.chat"): {
        "tools": {"reasoning_effort": "none"},
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
    },
    ("openai", "gpt-4o", "openai.chat"): {},
    ("openai", "gpt-5.1-codex", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("openai", "gpt-5.1-codex-max", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "xhigh"},
    },
    ("openai", "gpt-5", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("azure", "gpt-5-mini", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("openai", "gpt-5.1", "openai.chat"): {
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("openai", "gpt-5-pro", "openai.chat"): {
        "low": {"reasoning_effort": "high"},
        "max": {"reasoning_effort": "high"},
    },
    ("openai", "gpt-5.2-pro", "openai.chat"): {
        "low": {"reasoning_effort": "medium"},
        "max": {"reasoning_effort": "xhigh"},
    },
    ("azure", "o3", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("azure", "gpt-5.2", "openai.chat"): {
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "xhigh"},
    },
    ("azure", "our-deployment", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("deepseek", "deepseek-r1", "openai.chat"): {"images": "left out"},
    ("deepseek", "deepseek-v4", "openai.chat"): {
        "images": "left out",
        "thought": "reasoning_content",
        "demanded": "closed_call open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
    },
    ("moonshot", "kimi-k2.7-code", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "closed_call closed_end open_call open_end",
        "filled": [
            {"reasoning_content": ""},
            {"reasoning_content": ""},
            {"reasoning_content": ""},
            {"reasoning_content": ""},
        ],
        "on": {"thinking": {"type": "enabled"}},
    },
    ("moonshot", "kimi-k3", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "closed_call closed_end open_call open_end",
        "filled": [
            {"reasoning_content": ""},
            {"reasoning_content": ""},
            {"reasoning_content": ""},
            {"reasoning_content": ""},
        ],
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
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
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
        "kept": {"thinking": {"type": "enabled", "keep": "all"}},
    },
    ("moonshot", "kimi-k2.5", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "filled": [{"reasoning_content": ""}, {}, {"reasoning_content": ""}, {}],
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
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
        "on": {"thinking": {"type": "enabled"}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
    },
    ("zai", "glm-5.2", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
    },
    ("zai", "glm-4.7", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
    },
    ("zai", "glm-4.5v", "openai.chat"): {
        "thought": "reasoning_content",
        "demanded": "open_call",
        "on": {"thinking": {"type": "enabled"}},
        "kept": {"thinking": {"type": "enabled", "clear_thinking": False}},
    },
    ("minimax", "minimax-m3.1-flash", "openai.chat"): {
        "thought": "<think>/*/</think>/So",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "demanded": "open_call",
        "on": {"thinking": {"type": "adaptive"}},
    },
    ("minimax", "minimax-m3", "openai.chat"): {
        "thought": "<think>/*/</think>/So",
        "back": {
            "reasoning_content": "reasoning_content",
            "reasoning_details": "reasoning_details",
        },
        "demanded": "open_call",
        "on": {"thinking": {"type": "adaptive"}},
        "off": {"thinking": {"type": "disabled"}},
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
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "max", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("vllm", "deepseek-v3.1", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"thinking": True}},
        "off": {"chat_template_kwargs": {"thinking": False}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("vllm", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
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
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("lmstudio", "gpt-oss-20b", "openai.chat"): {
        "thought": "reasoning",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("lmstudio", "qwen3", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning": "reasoning"},
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("ollama", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("groq", "openai/gpt-oss-120b", "openai.chat"): {
        "thought": "reasoning",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("groq", "qwen/qwen3-32b", "openai.chat"): {
        "thought": "reasoning",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "default"},
        "max": {"reasoning_effort": "default"},
    },
    ("cerebras", "zai-glm-4.7", "openai.chat"): {
        "thought": "<think>*</think>So",
        "off": {"reasoning_effort": "none"},
        "kept": {"clear_thinking": False},
    },
    ("cerebras", "gpt-oss-120b", "openai.chat"): {
        "thought": "reasoning",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("xai", "grok-5", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "xhigh"},
    },
    ("xai", "grok-4-fast-reasoning", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
    },
    ("xai", "grok-3-mini", "openai.chat"): {
        "thought": "reasoning_content",
        "seal": "encrypted_content",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("together", "zai-org/GLM-5.3", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning": "reasoning"},
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("together", "Qwen/Qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("fireworks", "kimi-k2", "openai.chat"): {
        "thought": "reasoning_content",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "kept": {"reasoning_history": "preserved"},
    },
    ("fireworks", "deepseek-v4-pro", "openai.chat"): {
        "thought": "reasoning_content",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "kept": {"reasoning_history": "preserved"},
    },
    ("fireworks", "glm-5p2", "openai.chat"): {
        "thought": "reasoning_content",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "high"},
        "max": {"reasoning_effort": "max"},
        "kept": {"reasoning_history": "preserved"},
    },
    ("litellm", "anthropic/claude-opus-5", "openai.chat"): {
        "seal": "thinking_blocks",
        "demanded": "open_call",
        "reads": "anthropic/claude-opus-5",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
    },
    ("litellm", "gemini/gemini-3-pro", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "thinking_blocks",
        "reads": "gemini/gemini-3-pro",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
    },
    ("litellm", "xai/grok-5", "openai.chat"): {
        "thought": "reasoning_content",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "thinking_blocks",
        "reads": "xai/grok-5",
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "max"},
    },
    ("github-copilot", "claude-opus-5", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "reads": "claude-opus-5",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("github-copilot", "gemini-3-pro", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "demanded": "open_call",
        "reads": "gemini-3-pro",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("github-copilot", "gpt-5.6", "openai.chat"): {
        "thought": "reasoning_text",
        "seal": "reasoning_opaque",
        "reads": "gpt-5.6",
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("vercel", "openai/gpt-5.6", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_details": "reasoning_details"},
        "seal": "reasoning_details",
        "on": {"reasoning": {"enabled": True}},
        "off": {"reasoning": {"enabled": False}},
        "low": {"reasoning": {"effort": "low", "enabled": True}},
        "max": {"reasoning": {"effort": "xhigh", "enabled": True}},
        "budget": {"reasoning": {"max_tokens": 2048, "enabled": True}},
    },
    ("cloudflare", "qwen3", "openai.chat"): {
        "thought": "reasoning",
        "back": {"reasoning_content": "reasoning_content"},
        "on": {"chat_template_kwargs": {"enable_thinking": True}},
        "off": {"chat_template_kwargs": {"enable_thinking": False}},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
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
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
    },
    ("google", "gemini-2.5-pro", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
    },
    ("google", "gemini-3-pro", "openai.chat"): {
        "filled": [
            {
                "calls": [
                    {
                        "extra_content": {
                            "google": {"thought_signature": "skip_thought_signature_validator"}
                        }
                    }
                ]
            },
            {},
            {
                "calls": [
                    {
                        "extra_content": {
                            "google": {"thought_signature": "skip_thought_signature_validator"}
                        }
                    }
                ]
            },
            {},
        ],
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
    },
    ("vertex", "gemini-2.5-pro", "openai.chat"): {
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
    },
    ("vertex", "gemini-3-pro", "openai.chat"): {
        "filled": [
            {
                "calls": [
                    {
                        "extra_content": {
                            "google": {"thought_signature": "skip_thought_signature_validator"}
                        }
                    }
                ]
            },
            {},
            {
                "calls": [
                    {
                        "extra_content": {
                            "google": {"thought_signature": "skip_thought_signature_validator"}
                        }
                    }
                ]
            },
            {},
        ],
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
        "budget": {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2048}}}},
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
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("mistral", "mistral-medium-3.5", "openai.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        "off": {"reasoning_effort": "none"},
        "max": {"reasoning_effort": "high"},
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
        "off": {"reasoning_effort": "none"},
        "low": {"reasoning_effort": "low"},
        "max": {"reasoning_effort": "high"},
    },
    ("mistral", "mistral-medium-3.5", "mistral.chat"): {
        "thought": "content",
        "seal": "content",
        "filled": [{}, {}, {}, {"prefix": True}],
        "off": {"reasoning_effort": "none"},
        "max": {"reasoning_effort": "high"},
    },
    ("cohere", "command-a-reasoning", "cohere.chat"): {
        "thought": "content",
        "back": {"tool_plan": "tool_plan"},
        "on": {"thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
        "budget": {"thinking": {"token_budget": 2048, "type": "enabled"}},
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
