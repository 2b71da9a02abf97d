"""What is promised of Chat Completions and its kin: fields, arrays, calls, usage, bad input."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from reasoning_store.conversation.blocks import (
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
)
from reasoning_store.conversation.chunks import (
    TextChunk,
    UnknownChunk,
)
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import call_ids, contract_lookup
from tests.properties import each
from tests.wire.cases import Case, params
from tests.wire.chat_events import (
    call,
    chunks,
    delta,
    response,
    streamed,
    thoughts,
    whole,
)
from tests.wire.chat_readings import calls

OPENAI_SHAPED = "openai_chat deepseek_chat moonshot_kimi minimax_chat openrouter_chat vllm_chat"


SCENE = [item for item in params("stream") if item.values[0].file in OPENAI_SHAPED.split()]


# --- the official SDK --------------------------------------------------------------------


@pytest.mark.parametrize("case", SCENE)
def test_the_sdk_accepts_the_stream_and_its_objects_give_the_same_message(case: Case) -> None:
    """Attributes and extra fields of the SDK's chunks are read like the JSON they came from."""
    from_dicts, from_objects = case.normalizer(), case.normalizer()
    for event in case.variant["stream"]:
        from_dicts.feed(event)
        from_objects.feed(ChatCompletionChunk.model_validate(event))

    assert from_objects.finish() == from_dicts.finish()


@pytest.mark.parametrize("case", SCENE)
def test_events_of_the_sdks_stream_helper_are_read_once(case: Case) -> None:
    """It yields each chunk inside an event of its own, and next to them what they add up to."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    from_chunks, from_events = case.normalizer(), case.normalizer()
    derived = 0
    for event in case.variant["stream"]:
        from_chunks.feed(event)
        for helped in state.handle_chunk(ChatCompletionChunk.model_validate(event)):
            from_events.feed(helped)
            derived += helped.type != "chunk"

    assert derived
    assert from_events.finish() == from_chunks.finish()


@pytest.mark.parametrize("case", SCENE)
def test_the_sdk_accepts_the_response_and_its_object_gives_the_same_message(case: Case) -> None:
    """A whole response may be the SDK's ChatCompletion."""
    body = ChatCompletion.model_validate(case.variant["nonstream"])

    assert normalize_response(body, provider=case.provider, api=case.api) == case.whole()


def test_the_sdk_object_of_a_malformed_event_is_one_unknown_chunk() -> None:
    """The SDK builds objects of anything; a wrong type in one is still a wrong type."""
    event = ChatCompletionChunk.construct(choices=[{"index": 0, "delta": {"content": 5}}])

    assert [type(chunk) for chunk in chunks(event)] == [UnknownChunk]


# --- aliases -----------------------------------------------------------------------------


def test_every_alias_is_told_best_first_under_its_own_name() -> None:
    """Which one counts is decided by ingress, so nothing that arrives is left out."""
    names = contract_lookup.mirrored_fields(contract_lookup.find_contract("deepseek"))
    values: dict[str, Any] = {
        "thinking_blocks": [{"type": "thinking", "thinking": "t"}],
        "reasoning_details": [{"type": "reasoning.text", "text": "t", "index": 0}],
        "reasoning_items": [{"type": "reasoning", "id": "rs", "encrypted_content": "e"}],
        "content": [{"type": "thinking", "thinking": "t"}],
    }
    flat: dict[str, Any] = {name: "t" for name in names if name not in values and "." not in name}

    found = chunks(delta(**values, **flat), provider="deepseek")

    assert [chunk.metadata["sourceField"] for chunk in found if chunk.type == "reasoning"] == [
        *names
    ]
    assert names[0] == "reasoning_content"


@pytest.mark.parametrize(
    ("provider", "first"),
    [("deepseek", "reasoning_content"), ("groq", "reasoning"), (None, "reasoning")],
)
def test_the_first_alias_of_the_contract_counts_and_its_copies_are_not_stored_twice(
    provider: str | None, first: str
) -> None:
    """Hosts that send the thought in two fields send the same thought."""
    both = delta(reasoning="Think.", reasoning_content="Think.")

    assert thoughts(streamed(both, delta(content="Say."), provider=provider)) == [("Think.", first)]


def test_reasoning_stands_before_the_text_and_the_calls_of_the_same_event() -> None:
    """The event in which a model changes over holds the last thought and the first word."""
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    event = delta(tool_calls=[call], content="Say.", reasoning_content="Think.")

    assert [chunk.type for chunk in chunks(event)] == ["reasoning", "text", "tool_call"]


def test_reasoning_that_comes_again_behind_text_is_another_block() -> None:
    """The order in which things happened is kept."""
    message = streamed(
        delta(reasoning="A"), delta(content="B"), delta(reasoning="C"), delta(content="D")
    )

    assert [block.type for block in message.blocks] == ["thinking", "text"] * 2


@pytest.mark.parametrize(
    "empty",
    [
        {"role": "assistant", "content": ""},
        {"content": None, "reasoning_content": None, "tool_calls": None, "refusal": None},
        {"reasoning_content": "", "reasoning_details": [], "tool_calls": []},
        {},
    ],
)
def test_an_empty_delta_says_nothing(empty: dict[str, Any]) -> None:
    """Role-only events and empty fields switch no channel and are not unknown."""
    assert chunks(delta(**empty)) == []


def test_a_list_of_text_in_place_of_a_reasoning_string_is_read() -> None:
    """Some gateways send parts where the others send a string."""
    event = delta(reasoning_content=[{"type": "text", "text": "Thi"}, "nk."])

    assert thoughts(streamed(event)) == [("Think.", "reasoning_content")]


def test_the_thought_that_a_cipher_seals_is_one_block_whatever_comes_between() -> None:
    """GitHub Copilot's seal comes in an event of its own, after the text it belongs to."""
    message = streamed(
        delta(reasoning_text="Thi"),
        delta(reasoning_text="nk."),
        delta(content="Say."),
        delta(reasoning_opaque="b3BhcXVl"),
        delta(finish="stop"),
        provider="github-copilot",
    )

    assert message == whole(
        response(content="Say.", reasoning_text="Think.", reasoning_opaque="b3BhcXVl"),
        provider="copilot",
    )
    assert thoughts(message) == [("Think.", "reasoning_text")]
    assert message.thinking[0].signature == "b3BhcXVl"


def test_a_summary_with_ciphertext_is_opaque() -> None:
    """Qwen4-Max sends a summary as reasoning_content; alone it is not what was thought."""
    message = streamed(
        delta(encrypted_content="gAAA"),
        delta(reasoning_content="Summ"),
        delta(content="Say."),
        delta(reasoning_content="ary."),
        delta(finish="stop"),
        provider="qwen",
        model="qwen4-max-2026-11-01",
    )

    assert [(block.thought, block.encrypted) for block in message.thinking] == [
        ("Summary.", "gAAA")
    ]
    assert message.thinking[0].opaque


@pytest.mark.parametrize("late", [False, True])
def test_a_cipher_of_an_unknown_host_is_never_lost(late: bool) -> None:
    """Without a row for the host it seals the open thought, or stands alone."""
    events = [delta(reasoning_content="T"), delta(encrypted_content="gAAA"), delta(content="S")]
    message = streamed(*(reversed(events) if late else events))

    assert [block.encrypted for block in message.thinking if block.encrypted] == ["gAAA"]
    assert "".join(block.thought for block in message.thinking) == "T"


# --- content -----------------------------------------------------------------------------


def test_a_list_of_parts_gives_text_pictures_and_what_nobody_knows() -> None:
    """Parts keep their order, and a part of an unknown type is kept as it came."""
    png = b64encode(b"png").decode()
    strange = {"type": "hologram", "data": [1]}
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}
    message = whole(
        response(
            content=[
                {"type": "text", "text": "See "},
                "this:",
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}},
                {"type": "image_url", "image_url": "https://example.org/a.png"},
                strange,
                broken,
                {"type": "text", "text": "Done.", "annotations": [{"n": 1}]},
            ]
        )
    )

    assert message.blocks == (
        TextBlock(text="See this:"),
        MediaBlock(kind="image", mime_type="image/png", data=b"png"),
        MediaBlock(kind="image", mime_type="image/*", url="https://example.org/a.png"),
        RawBlock(data=strange),
        RawBlock(data=broken),
        TextBlock(text="Done.", provider_metadata={"annotations": [{"n": 1}]}),
    )


def test_thoughts_among_the_parts_of_anthropic_are_read() -> None:
    """Gateways in front of Anthropic pass its content list on."""
    parts = [
        {"type": "thinking", "thinking": "A", "signature": "cw=="},
        {"type": "thinking", "thinking": "B"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "Say."},
    ]
    message = whole(response(content=parts))

    assert message.blocks == (
        ThinkingBlock(thought="A", source_field="content.thinking", signature="cw=="),
        ThinkingBlock(thought="B", source_field="content.thinking"),
        ThinkingBlock(
            source_field="content.thinking", encrypted="ZGF0YQ==", redacted=True, is_hidden=True
        ),
        TextBlock(text="Say."),
    )
    assert streamed(*(delta(content=[part]) for part in parts)).blocks == message.blocks


def test_a_refusal_is_visible_text_and_marked() -> None:
    """A user has to see it, and it goes back to its own field."""
    message = streamed(delta(refusal="I can"), delta(refusal="not."), delta(finish="stop"))

    assert message.blocks == (TextBlock(text="I cannot.", provider_metadata={"refusal": True}),)
    assert message.blocks == whole(response(content=None, refusal="I cannot.")).blocks


def test_sound_in_pieces_is_one_block_and_its_words_are_text() -> None:
    """Every piece of base64 stands for itself."""
    pieces = [b64encode(data).decode() for data in (b"so", b"und")]
    message = streamed(
        delta(audio={"id": "audio_1", "transcript": "He"}),
        delta(audio={"transcript": "llo", "data": pieces[0]}),
        delta(audio={"data": pieces[1], "expires_at": 9}),
        delta(finish="stop"),
    )
    spoken = {"id": "audio_1", "expires_at": 9}
    data = b64encode(b"sound").decode()

    assert message.blocks == (
        TextBlock(text="Hello", provider_metadata={"audio": {"id": "audio_1"}}),
        MediaBlock(kind="audio", mime_type="audio/*", data=b"sound", provider_metadata=spoken),
    )
    assert (
        message.blocks
        == whole(response(audio={**spoken, "transcript": "Hello", "data": data})).blocks
    )


def test_pictures_beside_the_content_are_blocks() -> None:
    """OpenRouter's models that draw put them into a field of their own."""
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = streamed(delta(content="Look:"), delta(images=[picture]))

    assert [block.type for block in message.blocks] == ["text", "media"]


def test_annotations_stay_with_the_text_they_are_about() -> None:
    """They are collected, however many events they come in."""
    message = streamed(
        delta(content="Say."), delta(annotations=[{"n": 1}]), delta(annotations=[{"n": 2}])
    )

    assert message.blocks == (
        TextBlock(text="Say.", provider_metadata={"annotations": [{"n": 1}, {"n": 2}]}),
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("extra_content", {"google": {"thought_signature": "c2ln"}}),
        ("provider_specific_fields", {"thought_signatures": ["c2ln"]}),
    ],
)
def test_a_signature_on_the_text_of_a_message_survives(field: str, value: Any) -> None:
    """Gemini seals answers too, and its compatible endpoints say so in fields of their own."""
    message = streamed(delta(content="Say."), delta(**{field: value}), delta(finish="stop"))

    assert message.blocks == (TextBlock(text="Say.", provider_metadata={field: value}),)


def test_a_mark_without_a_signature_is_not_kept() -> None:
    """Google marks thought text in the same field; that mark makes no block."""
    assert chunks(delta(extra_content={"google": {"thought": True}})) == []


def test_log_probabilities_and_other_fields_say_nothing() -> None:
    """A field that no one knows changes nothing."""
    event = delta(content="Say.", token_ids=[1], obfuscation="x")
    event["choices"][0]["logprobs"] = {"content": [{"token": "Say"}]}

    assert chunks(event) == [TextChunk(text="Say.")]


BOTH = [("c1", "f", '{"a":1}'), ("c2", "g", "{}")]


# --- tool calls --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [
                delta(tool_calls=[call(0, id="c1", type="function", name="f", arguments="")]),
                delta(tool_calls=[call(0, arguments='{"a"')]),
                delta(tool_calls=[call(0, arguments=":1}")]),
                delta(tool_calls=[call(1, id="c2", name="g", arguments="{}")]),
            ],
            id="one after the other",
        ),
        pytest.param(
            [
                delta(
                    tool_calls=[
                        call(0, id="c1", name="f", arguments='{"a"'),
                        call(1, id="c2", name="g", arguments="{"),
                    ]
                ),
                delta(tool_calls=[call(1, arguments="}"), call(0, arguments=":1}")]),
            ],
            id="both at once",
        ),
        pytest.param(
            [
                delta(tool_calls=[call(None, id="c1", name="f", arguments='{"a"')]),
                delta(tool_calls=[call(None, arguments=":1}")]),
                delta(tool_calls=[call(None, id="c2", name="g", arguments="{}")]),
            ],
            id="no index",
        ),
        *(
            pytest.param(
                [
                    delta(tool_calls=[call(none, id="c1", name="f", arguments='{"a":1}')]),
                    delta(tool_calls=[call(none, id="c2", name="g", arguments="{}")]),
                ],
                id=f"a number that is none: {none!r}",
            )
            for none in (-1, "0", 0.5, True)
        ),
        pytest.param(
            [
                delta(tool_calls=[call(None, id="c1", name="f", arguments='{"a"')]),
                delta(tool_calls=[call(None, id="c2", name="g", arguments="{")]),
                delta(tool_calls=[call(None, id="c1", arguments=":1}")]),
                delta(tool_calls=[call(None, id="c2", arguments="}")]),
            ],
            id="ids in place of an index",
        ),
        pytest.param(
            [
                delta(tool_calls=[call(0, id="c1", name="f", arguments='{"a":1}')]),
                delta(tool_calls=[call(0, id="c2", name="g", arguments="{}")]),
            ],
            id="one index for all",
        ),
        pytest.param(
            [
                delta(tool_calls=[call(0, id="c1", name="f", arguments='{"a"')]),
                delta(tool_calls=[call(0, id="random-7", arguments=":1}")]),
                delta(tool_calls=[call(1, id="c2", name="g", arguments="{}")]),
            ],
            id="an id of its own in each fragment",
        ),
        pytest.param(
            [
                delta(tool_calls=[call(0, id="c1", name="f", arguments='{"a"')]),
                delta(tool_calls=[call(0, id="c1", name="f", arguments=":1}")]),
                delta(tool_calls=[call(1, id="c2", name="g", arguments="{}")]),
            ],
            id="id and name again and again",
        ),
    ],
)
def test_calls_are_told_apart_however_a_host_numbers_them(events: list[Any]) -> None:
    """An index, an id, both, or only the order in which they come."""
    assert calls(*events) == BOTH


@pytest.mark.parametrize("none", [-1, "0", 0.5, True, float("nan"), None])
def test_a_choice_whose_number_is_none_has_its_place(none: Any) -> None:
    """An answer is not lost because its host counts wrongly, streamed and whole."""
    choices = [{"index": none, "delta": {"content": text}} for text in ("a", "b")]
    normalizer = StreamNormalizer()
    normalizer.feed({"choices": choices})
    told = [{"index": none, "message": {"content": "a"}, "finish_reason": "stop"}]

    assert (normalizer.finish().text, *(other.text for other in normalizer.others)) == ("a", "b")
    assert normalize_response({"choices": told}).text == "a"


@each("host_id", [None, ""])
@each("name", ["f", "g"])
@each("together", [True, False])
def test_calls_with_one_index_and_no_id_are_told_apart(
    host_id: str | None, name: str, together: bool
) -> None:
    """Gemini's endpoint does not count calls that it makes at once, and may not name them."""
    items = [
        call(0, id=host_id, name="f", arguments='{"a":1}'),
        call(0, id=host_id, name=name, arguments='{"a":2}'),
    ]
    made = calls(
        *([delta(tool_calls=items)] if together else [delta(tool_calls=[i]) for i in items])
    )

    assert [item[1:] for item in made] == [("f", '{"a":1}'), (name, '{"a":2}')]
    assert len({item[0] for item in made}) == 2


def test_a_name_that_is_repeated_beside_each_piece_is_one_call() -> None:
    """Also where no id says so: its arguments have not ended yet."""
    pieces = ['{"a":', '{"b":1}', ',"c":2}']
    [made] = calls(*(delta(tool_calls=[call(0, name="f", arguments=piece)]) for piece in pieces))

    assert made[1:] == ("f", "".join(pieces))


def test_whole_calls_are_as_many_as_there_are() -> None:
    """In a message every entry is a call, with the same index or with none."""
    items = [call(0, id="c1", name="f", arguments='{"a":1}'), call(0, id="c2", name="g")]
    message = whole(response(tool_calls=items))

    assert [(item.id, item.parameters) for item in message.tool_calls] == [
        ("c1", {"a": 1}),
        ("c2", {}),
    ]


def test_a_call_without_an_id_gets_the_same_one_whole_or_streamed() -> None:
    """It can be answered, and told from an id of the provider's."""
    item = call(0, name="f", arguments="{}")
    one = streamed(delta(tool_calls=[item])).tool_calls[0]

    assert one == whole(response(tool_calls=[{**item, "id": "null"}])).tool_calls[0]
    assert call_ids.is_made_here(one.id)


def test_an_object_in_place_of_the_argument_string_is_the_parameters() -> None:
    """Some local servers parse it themselves."""
    message = streamed(delta(tool_calls=[call(0, id="c1", name="f", arguments={"a": 1})]))

    assert [(item.parameters, item.arguments) for item in message.tool_calls] == [({"a": 1}, None)]


def test_a_custom_tools_input_is_kept_as_the_string_it_is() -> None:
    """It is no JSON, and its type tells how it goes back."""
    item = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls "}}
    message = streamed(delta(tool_calls=[item]), delta(tool_calls=[{**item, "id": None}]))
    found = message.tool_calls[0]

    assert (found.name, found.arguments) == ("sh", "ls ls ")
    assert found.provider_metadata == {"type": "custom"}


def test_the_legacy_function_call_is_a_call() -> None:
    """Name first, arguments in pieces, no id."""
    events = [
        delta(function_call={"name": "f", "arguments": ""}),
        delta(function_call={"arguments": "{}"}),
    ]
    body = response(content=None, function_call={"name": "f", "arguments": "{}"})

    assert calls(*events) == [(item.id, "f", "{}") for item in whole(body).tool_calls]


def test_a_signature_on_a_call_survives() -> None:
    """Gemini's compatible endpoint and LiteLLM put it there; without it the next request fails."""
    extra = {"google": {"thought_signature": "c2ln"}}
    first = call(0, id="c1", name="f", arguments="{", extra_content=extra)
    message = streamed(delta(tool_calls=[first]), delta(tool_calls=[call(0, arguments="}")]))
    nested = {"thought_signature": "c2ln"}
    body = response(tool_calls=[call(0, id="c1", name="f", provider_specific_fields=nested)])

    assert message.tool_calls[0].provider_metadata == {"extra_content": extra}
    assert whole(body).tool_calls[0].provider_metadata == {"provider_specific_fields": nested}
