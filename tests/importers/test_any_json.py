"""Whatever JSON a file holds: it is read, or refused by its line, and never a fault of Python's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.importers import formats

NAMES = """
role content tool_calls tool_call_id type text thinking reasoning_content reasoning summary id name
function arguments messages input output items system call_id reasoning_details thinking_blocks
signature data source url image_url input_audio format file media_type encrypted_content usage model
tool_use_id is_error created_at conversation_id title refusal audio provider_specific_fields
""".split()
KINDS = """
user assistant tool system developer function message text input_text output_text tool_use
tool_result thinking redacted_thinking reasoning function_call function_call_output image document
file input_audio image_url base64
""".split()

values = st.recursive(
    st.sampled_from([None, True, 0, 2.5, "", "<think>7</think>No.", "7", *KINDS]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
parts = st.dictionaries(st.sampled_from(NAMES), values, max_size=4).flatmap(
    lambda part: st.sampled_from([*KINDS, {}, [], 7]).map(lambda kind: {**part, "type": kind})
)
messages = st.builds(
    lambda role, content, more: {**more, "role": role, "content": content},
    st.sampled_from(["user", "assistant", "tool", "system", "robot", None, {}]),
    values | st.lists(parts, max_size=3),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
histories = (
    st.lists(messages | parts, min_size=1, max_size=4)
    | st.builds(lambda more, said: {**more, "messages": said}, parts, st.lists(messages))
    | st.builds(lambda more, said: {**more, "input": said}, parts, st.lists(messages | parts))
    | values
)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@example(history=[{"role": "user", "content": [{"type": {}, "text": "7"}]}])
@given(history=histories)
def test_any_json_is_read_or_refused_by_its_line(format: str, history: Any) -> None:
    """A field may hold what no protocol has it hold: a list for a name, a number for a list."""
    told = "line 1: "
    try:
        for conversation in formats.conversations([json.dumps(history)], format=format):
            assert conversation.report.messages == len(conversation.items)
    except InvalidCall as error:
        told = str(error)

    assert told.startswith("line 1: ")
    assert told.count("line 1") == 1
