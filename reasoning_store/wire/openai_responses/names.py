"""The names of the Responses protocol's events, and the field that each of them is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SUMMARY: Final = ("reasoning", "summary")
CONTENT: Final = ("reasoning", "content")
TEXT: Final = ("message", "text")
REFUSAL: Final = ("message", "refusal")

TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "response.reasoning_summary_text": SUMMARY,
    "response.reasoning_text": CONTENT,
    "response.output_text": TEXT,
    "response.refusal": REFUSAL,
    # The names of the Open Responses specification, of early previews, and of gateways.
    "response.reasoning": CONTENT,
    "response.reasoning_content": CONTENT,
    "response.reasoning_summary": SUMMARY,
}
"""The texts that events are about; each name has a ``.delta`` and a ``.done``."""

PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "summary_text": SUMMARY,
    "reasoning_text": CONTENT,
    "output_text": TEXT,
    "text": TEXT,
    "refusal": REFUSAL,
}

RESPONSE: Final[Mapping[str, type]] = {"id": str, "status": str, "output": list}
"""Any of these makes an object a response, and its event the end of the stream."""

ERROR: Final[Mapping[str, type]] = {"message": str, "code": str, "error": dict}
"""Any of these makes an object an error."""

WHOLE: Final = ("conversation", "metadata", "previous_response_id")
"""Fields of the response as a whole."""

SILENT: Final = frozenset(
    f"response.{name}"
    for name in (
        "apply_patch_call_operation_diff.delta",
        "apply_patch_call_operation_diff.done",
        "audio.delta",
        "audio.done",
        "audio.transcript.delta",
        "audio.transcript.done",
        "code_interpreter_call.completed",
        "code_interpreter_call.in_progress",
        "code_interpreter_call.interpreting",
        "code_interpreter_call_code.delta",
        "code_interpreter_call_code.done",
        "compaction.compacting",
        "file_search_call.completed",
        "file_search_call.in_progress",
        "file_search_call.searching",
        "image_generation_call.completed",
        "image_generation_call.generating",
        "image_generation_call.in_progress",
        "image_generation_call.partial_image",
        "mcp_call.completed",
        "mcp_call.failed",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_list_tools.completed",
        "mcp_list_tools.failed",
        "mcp_list_tools.in_progress",
        "shell_call_command.added",
        "shell_call_command.delta",
        "shell_call_command.done",
        "shell_call_output_content.delta",
        "shell_call_output_content.done",
        "steer.accepted",
        "steer.failed",
        "steer.pending",
        "web_search_call.completed",
        "web_search_call.in_progress",
        "web_search_call.searching",
    )
) | {"keepalive"}
"""Progress of items that are kept whole when they are done: the item repeats it all."""
