"""What is promised of Mistral's chat: thoughts among the content, and the SDK's own objects."""

from __future__ import annotations

from typing import Any

import pytest
from mistralai.client.models import ChatCompletionResponse, CompletionEvent

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
)
from reasoning_store.conversation.chunks import (
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup, mistral
from reasoning_store.wire.call_ids import is_made_here
from tests.wire.cases import Case, params
from tests.wire.chat_events import call, delta, response

SCENE = [item for item in params("stream") if item.values[0].file == "mistral_chat"]
SOURCE = "content.thinking"


def thinking(*pieces: Any, **fields: Any) -> dict[str, Any]:
    """A thinking chunk, whose thinking is a list."""
    texts = [{"type": "text", "text": item} if isinstance(item, str) else item for item in pieces]
    return {"type": "thinking", "thinking": texts, **fields}


NOT_REASONING = (
    "codestral-2508 ministral-8b-latest open-mistral-nemo open-mixtral-8x22b pixtral-large-latest "
    "mistral-small-2503 mistral-medium-2508 mistral-large-2411"
).split()
REASONING = "magistral-medium-2509 mistral-small-2603 mistral-medium-2604 mistral-large-4".split()


@pytest.mark.parametrize("api", ["mistral.chat", "openai.chat", "openai.responses"])
def test_thoughts_go_back_only_to_models_that_reason(api: str) -> None:
    """The others refuse a request with thinking in it."""

    def kept(model: str) -> bool:
        thought = ThinkingBlock(thought="Hm.")
        history = [rs.user("Hi"), rs.assistant(thought, "Hello."), rs.user("And?")]
        keep = {"reasoning.includeInContext": True}
        request = rs.build_request(history, provider="mistral", model=model, api=api, settings=keep)
        assert ("Hm." in str(request.body)) is request.verdicts[0].kept
        return request.verdicts[0].kept

    assert [model for model in (*NOT_REASONING, *REASONING) if kept(model)] == REASONING


def streamed(*events: Any) -> Message:
    normalizer = StreamNormalizer("mistral")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def whole(body: Any) -> Message:
    return normalize_response(body, provider="mistral")


@pytest.mark.parametrize("case", SCENE)
def test_the_sdk_accepts_the_stream_and_its_objects_give_the_same_message(case: Case) -> None:
    """The SDK wraps each event in ``data`` and has types of its own for every chunk."""
    events = case.variant["stream"]
    objects = [CompletionEvent.model_validate({"data": event}) for event in events]

    assert streamed(*objects) == streamed(*events)
    assert streamed(*({"data": event} for event in events)) == streamed(*events)
    assert streamed(*(item.data for item in objects)) == streamed(*events)


@pytest.mark.parametrize("case", SCENE)
def test_the_sdk_accepts_the_response_and_its_object_gives_the_same_message(case: Case) -> None:
    """A whole response may be the SDK's own."""
    body = ChatCompletionResponse.model_validate(case.variant["nonstream"])

    assert whole(body) == whole(case.variant["nonstream"])


def test_content_changes_from_a_list_to_a_string_in_mid_stream() -> None:
    """Lists while the model thinks, strings when it answers."""
    message = streamed(
        delta(role="assistant", content=""),
        delta(content=[thinking("Thi")]),
        delta(content=[thinking("nk"), thinking(".")]),
        delta(content="Sa"),
        delta(content=[{"type": "text", "text": "y."}]),
        delta(finish="stop"),
    )

    assert message.blocks == (
        ThinkingBlock(thought="Think.", source_field=SOURCE),
        TextBlock(text="Say."),
    )
    assert message.finish_reason == "stop"


def test_a_signature_ends_a_thought_and_belongs_to_it() -> None:
    """The next thinking chunk is another block, also without text between."""
    parts = [thinking("A", signature="cw=="), thinking("B", signature="dA==")]
    message = whole(response(content=[*parts, {"type": "text", "text": "Say."}]))

    assert [(block.thought, block.signature) for block in message.thinking] == [
        ("A", "cw=="),
        ("B", "dA=="),
    ]
    assert (
        message.blocks
        == streamed(
            delta(content=[thinking("A")]),
            delta(content=[thinking(signature="cw==")]),
            delta(content=[thinking("B", signature="dA==")]),
            delta(content="Say."),
        ).blocks
    )


def test_an_empty_thought_with_a_signature_is_real() -> None:
    """EC-002: a seal has to go back."""
    message = whole(response(content=[thinking(signature="cw==")]))

    assert message.blocks == (ThinkingBlock(source_field=SOURCE, signature="cw==", is_hidden=True),)
    assert whole(response(content=[thinking()])).blocks == ()


def test_references_inside_a_thought_are_kept_with_it() -> None:
    """They are no text, and the thought goes back with them."""
    reference = {"type": "reference", "reference_ids": [1]}
    tool = {"type": "tool_reference", "tool": "web_search", "title": "Oslo", "url": "u"}
    part = thinking("A", reference, "B", tool)

    assert whole(response(content=[part])).blocks == (
        ThinkingBlock(
            thought="AB",
            source_field=SOURCE,
            provider_metadata={"references": [reference, tool]},
        ),
    )


def test_references_in_the_answer_are_kept_as_they_came() -> None:
    """They stand between the texts that cite them."""
    reference = {"type": "reference", "reference_ids": [1]}
    content = [{"type": "text", "text": "A"}, reference, {"type": "text", "text": "B"}]

    assert whole(response(content=content)).blocks == (
        TextBlock(text="A"),
        RawBlock(data=reference),
        TextBlock(text="B"),
    )


def test_parallel_calls_share_an_index_and_are_told_by_their_ids() -> None:
    """The SDK numbers every call 0 where the wire has no index."""
    items = [call(0, id="c1", name="f", arguments="{}"), call(0, id="c2", name="g", arguments={})]
    message = streamed(delta(tool_calls=items), delta(finish="tool_calls"))

    assert [(item.id, item.name, item.parameters) for item in message.tool_calls] == [
        ("c1", "f", {}),
        ("c2", "g", {}),
    ]


def test_the_word_null_is_no_id() -> None:
    """The SDK's default for an id is a word; two calls with it would be one."""
    event = {**delta(tool_calls=[call(0, name="f", arguments="{}")]), "created": 1}
    objects = CompletionEvent.model_validate({"data": event})
    named = [streamed(item).tool_calls[0].id for item in (event, objects)]
    assert is_made_here(named[0])
    assert named[0] == named[1]


def test_usage_has_no_count_of_reasoning() -> None:
    """Absent is not zero."""
    usage = {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50}
    read = streamed({**delta(content="x"), "usage": usage}).usage

    assert read is not None
    assert (read.input, read.output, read.reasoning) == (20, 30, None)


@pytest.mark.parametrize("bad", [{"data": 5}, {"data": None}, {"data": {}}, 5, None])
def test_a_bad_event_is_one_unknown_chunk(bad: Any) -> None:
    """Also inside the SDK's envelope."""
    reader = mistral.MistralReader(contract_lookup.find_contract("mistral"))

    assert [type(chunk) for chunk in reader.parse_chunk(bad)] == [UnknownChunk]


def test_a_thinking_chunk_without_its_form_is_kept_as_it_came() -> None:
    """Its neighbours count."""
    broken = {"type": "thinking", "thinking": 5}
    message = streamed(delta(content=[thinking("A"), broken]), delta(content="Say."))

    assert message.blocks == (
        ThinkingBlock(thought="A", source_field=SOURCE),
        RawBlock(data=broken),
        TextBlock(text="Say."),
    )


def test_the_adapter_is_mistrals_and_no_one_elses() -> None:
    """Mistral's models after other hosts speak those hosts' protocols."""
    reader = mistral.MistralReader(contract_lookup.find_contract("mistral"))

    assert reader.id == "mistral.chat"
    assert reader.can_handle("magistral-medium", "mistralai")
    assert not reader.can_handle("magistral-medium", "vllm")
    assert not reader.can_handle("magistral-medium", None)


def test_chunks_name_the_provider_and_the_phase() -> None:
    """A signature is reported with the text that it seals, and then the block is over."""
    reader = mistral.MistralReader(contract_lookup.find_contract("mistral"))
    found = reader.parse_chunk(
        {"choices": [{"index": 0, "delta": {"content": [thinking("A", signature="cw==")]}}]}
    )

    assert [
        (chunk.provider, chunk.phase, chunk.text, chunk.metadata)
        for chunk in found
        if isinstance(chunk, ReasoningChunk)
    ] == [
        ("mistral", "delta", "A", {"sourceField": SOURCE, "signature": "cw=="}),
        ("mistral", "end", "", {"sourceField": SOURCE}),
    ]


def test_a_body_without_choices_is_refused() -> None:
    """The error names what is missing."""
    with pytest.raises(WireError, match="no choices"):
        whole({"object": "chat.completion"})


def test_a_whole_answer_gives_its_chunks_in_order() -> None:
    """Thought, text, end."""
    body = response(content=[thinking("A"), {"type": "text", "text": "B"}])
    found = mistral.parse_response(body, contract_lookup.find_contract("mistral"))

    assert [type(chunk) for chunk in found[1:]] == [ReasoningChunk, TextChunk, FinishChunk]


def test_references_of_one_thought_come_in_several_chunks() -> None:
    """Each is kept, in order, with the thought that it stood in and no other."""
    normalizer = StreamNormalizer(provider="mistral")
    first, second, third = ({"type": "reference", "reference_ids": [n]} for n in (1, 2, 3))
    for content in ([thinking("A", first)], [thinking(second, "B")], "So", [thinking(third, "C")]):
        normalizer.feed({"choices": [{"index": 0, "delta": {"content": content}}]})

    kept = [block.provider_metadata for block in normalizer.finish().thinking]
    assert kept == [{"references": [first, second]}, {"references": [third]}]
