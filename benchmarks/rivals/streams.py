"""The rivals that read streams: Pydantic AI's tag splitting, LiteLLM's whole chunk."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.conversation import prose
from benchmarks.tags import Drive
from benchmarks.timing import timed
from benchmarks.workload import Sample, Setting

PYDANTIC_AI, LITELLM = "Pydantic AI", "LiteLLM"


def pydantic_ai() -> Drive:
    parts_manager = import_module("pydantic_ai._parts_manager").ModelResponsePartsManager
    parameters = import_module("pydantic_ai.models").ModelRequestParameters
    manager = parts_manager(model_request_parameters=parameters())

    def drive(deltas: list[str]) -> None:
        handle = manager.handle_text_delta
        for delta in deltas:
            for _ in handle(
                vendor_part_id="content", content=delta, thinking_tags=("<think>", "</think>")
            ):
                pass
        manager.get_parts()

    return drive


@cache
def _litellm() -> Any:
    """Return the module, kept from asking the network for prices and from advising."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    module: Any = import_module("litellm")
    module.suppress_debug_info = True
    return module


def litellm(stream: list[Any]) -> None:
    """Its wrapper turns each chunk into its own object; then it puts the list together."""
    module = _litellm()
    logging = import_module("litellm.litellm_core_utils.litellm_logging").Logging
    wrapper = module.CustomStreamWrapper(
        completion_stream=iter(stream),
        model="m",
        custom_llm_provider="openai",
        logging_obj=logging(
            model="m",
            messages=[],
            stream=True,
            call_type="completion",
            start_time=time.time(),
            litellm_call_id="1",
            function_id="1",
        ),
    )
    module.stream_chunk_builder(list(wrapper))


@contextmanager
def counting(setting: Setting) -> Iterator[Sample]:
    """LiteLLM's count of a text."""
    count, text = _litellm().token_counter, prose(setting.size)
    yield timed(setting, lambda: count(model="gpt-4o", text=text))
