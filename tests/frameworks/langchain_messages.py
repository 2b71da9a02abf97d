"""Messages of LangChain in every form that its model classes give them."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

THOUGHT: Final = "Oslo is cold in winter, so a tool is needed."
SECRETS: Final = (
    THOUGHT,
    "a short thought",
    "another part of the summary",
    *(f"seal-of-the-thought-{number}" for number in range(6)),
)
"""All that must be gone after an erasure of reasoning."""
_PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="


def _made_by(provider: str, **about: Any) -> dict[str, Any]:
    return {"model_provider": provider, **about}


PLAIN: Final[tuple[BaseMessage, ...]] = (
    HumanMessage("How is the weather in Oslo?"),
    HumanMessage(""),
    HumanMessage(
        [
            {"type": "text", "text": "And what is in this picture?"},
            {"type": "image_url", "image_url": {"url": _PIXEL, "detail": "low"}},
        ],
        id="h1",
        name="ann",
    ),
    SystemMessage("Be brief."),
    ToolMessage("4 C", tool_call_id="c1", name="get_weather"),
    ToolMessage(
        [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "u"}}],
        tool_call_id="c2",
        artifact={"numbers": [1, 2.0, True, None]},
        status="error",
    ),
    FunctionMessage("4 C", name="get_weather"),
    ChatMessage("An answer in another form.", role="assistant"),
    AIMessage(""),
    AIMessage("4 C.", id="run-1", usage_metadata=None),
)

THINKING: Final[dict[str, AIMessage]] = {
    "deepseek": AIMessage(
        "4 C.",
        additional_kwargs={"reasoning_content": THOUGHT},
        response_metadata=_made_by("deepseek", model_name="deepseek-chat", finish_reason="stop"),
        usage_metadata={"input_tokens": 30, "output_tokens": 12, "total_tokens": 42},
        id="r1",
    ),
    "tags": AIMessage(f"<think>{THOUGHT}</think>\n\nIt is four degrees in Oslo."),
    "anthropic": AIMessage(
        [
            {
                "type": "thinking",
                "thinking": THOUGHT,
                "signature": "seal-of-the-thought-0",
                "index": 0,
            },
            {"type": "text", "text": "One moment, please.", "index": 1},
            {"type": "tool_use", "id": "t1", "name": "w", "input": {"b": 1, "a": 2}, "index": 2},
        ],
        tool_calls=[{"name": "w", "args": {"b": 1, "a": 2}, "id": "t1"}],
        response_metadata=_made_by("anthropic", model_name="claude-opus-5"),
    ),
    "anthropic, redacted": AIMessage(
        [
            {"type": "redacted_thinking", "data": "seal-of-the-thought-1"},
            {"type": "text", "text": "4 C."},
        ],
        response_metadata=_made_by("anthropic", model_name="claude-opus-5"),
    ),
    "responses": AIMessage(
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [
                    {"type": "summary_text", "text": "a short thought"},
                    {"type": "summary_text", "text": "another part of the summary"},
                ],
                "encrypted_content": "seal-of-the-thought-2",
            },
            {"type": "text", "text": "It is 4 degrees.", "id": "msg_1", "annotations": []},
            {
                "type": "function_call",
                "name": "w",
                "arguments": '{"city":  "Oslo"}',
                "call_id": "c1",
                "id": "fc_1",
                "status": "completed",
            },
        ],
        tool_calls=[{"name": "w", "args": {"city": "Oslo"}, "id": "c1"}],
        id="resp_1",
        response_metadata=_made_by("openai", model_name="gpt-5.1", id="resp_1"),
    ),
    "responses, without a text": AIMessage(
        [
            {"type": "reasoning", "id": "rs_2", "summary": []},
            {"type": "text", "text": "It is 4 degrees.", "id": "msg_2", "annotations": []},
        ],
        response_metadata=_made_by("openai", model_name="gpt-5.1"),
    ),
    "gemini": AIMessage(
        [
            {"type": "thinking", "thinking": THOUGHT, "signature": "seal-of-the-thought-3"},
            "One moment.",
        ],
        tool_calls=[{"name": "w", "args": {}, "id": "g1"}],
        additional_kwargs={
            "__gemini_function_call_thought_signatures__": {"g1": "seal-of-the-thought-4"}
        },
        response_metadata=_made_by("google_genai", model_name="gemini-3-pro"),
    ),
    "standard blocks": AIMessage(
        [
            {
                "type": "reasoning",
                "reasoning": THOUGHT,
                "extras": {"signature": "seal-of-the-thought-5"},
            },
            {"type": "text", "text": "4 C."},
        ],
        response_metadata=_made_by("anthropic", output_version="v1"),
    ),
    "openrouter": AIMessage(
        "",
        additional_kwargs={
            "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "index": 0}],
            "tool_calls": [
                {"id": "k1", "type": "function", "function": {"name": "w", "arguments": '{"a":1}'}}
            ],
        },
        tool_calls=[{"name": "w", "args": {"a": 1}, "id": "k1"}],
        invalid_tool_calls=[
            {
                "name": "w",
                "args": "{not JSON",
                "id": "k2",
                "error": "cut off",
                "type": "invalid_tool_call",
            }
        ],
    ),
    "a piece of a stream": AIMessageChunk(
        [{"type": "thinking", "thinking": THOUGHT, "index": 0}],
        tool_call_chunks=[{"name": "w", "args": "{}", "id": "1", "index": 1}],
    ),
}
"""A reply with a thought, by where its model class puts the thought."""
